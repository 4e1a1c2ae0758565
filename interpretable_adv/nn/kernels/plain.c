/* For any processor: what the compiler assumes by default. The sizes can be set from outside,
 * which lets a test run the wider variants' tiling on a processor that lacks their registers. */
#define VARIANT plain
#ifdef PLAIN_LANES
#define LANES PLAIN_LANES
#define TILE_VECTORS PLAIN_TILE_VECTORS
#define PRODUCT_ROWS PLAIN_PRODUCT_ROWS
#else
#define LANES 4
#define TILE_VECTORS 2
#define PRODUCT_ROWS 6
#endif
#include "variant.h"
