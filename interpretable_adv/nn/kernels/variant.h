/* All kernels for one kind of processor. The including file has set VARIANT, LANES, TILE_VECTORS
 * and PRODUCT_ROWS and told the compiler which instructions it may use. */
#include "kernels.h"
#include "threads.h"
#include "vector.h"
#include "functions.h"
#include "lanes.h"

#define JOIN_AGAIN(a, b) a##_##b
#define JOIN(a, b) JOIN_AGAIN(a, b)
#define NAME(function) JOIN(VARIANT, function)
#define TEXT_AGAIN(word) #word
#define TEXT(word) TEXT_AGAIN(word)

#include "lstm.c"
#include "product.c"
#include "elementwise.c"
#include "softmax.c"
#include "row_sums.c"
#include "column_sums.c"
#include "square_sum.c"
#include "segment_sum.c"
#include "dots.c"
#include "combine.c"
#include "directions.c"
#include "top_k.c"
#include "adam.c"
#include "dropout.c"

#define FILL(kernel) NAME(kernel),
const struct kernels NAME(kernels) = {
    TEXT(VARIANT), TILE_COLUMNS, NAME(product_workspace), FOR_EACH_KERNEL(FILL)
};
