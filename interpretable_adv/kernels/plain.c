/* For any processor: what the compiler assumes by default. */
#define VARIANT plain
#define LANES 4
#define TILE_VECTORS 2
#include "variant.h"
