/* All kernels for one kind of processor. The including file has set VARIANT, LANES and
 * TILE_VECTORS and told the compiler which instructions it may use. */
#include "kernels.h"
#include "threads.h"
#include "vector.h"

#define JOIN_AGAIN(a, b) a##_##b
#define JOIN(a, b) JOIN_AGAIN(a, b)
#define NAME(function) JOIN(VARIANT, function)
#define TEXT_AGAIN(word) #word
#define TEXT(word) TEXT_AGAIN(word)

#include "lstm.c"
#include "adam.c"
#include "segment_sum.c"
#include "top_k.c"
#include "directions.c"
#include "dropout.c"

const struct kernels NAME(kernels) = {
    TEXT(VARIANT), TILE_COLUMNS, NAME(lstm_forward), NAME(lstm_backward), NAME(adam),
    NAME(square_sum), NAME(segment_sum), NAME(top_k), NAME(directions),
    NAME(dropout),
};
