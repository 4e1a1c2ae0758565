/* 16 registers of 8 floats: tiles of 6 rows by 2 vectors. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#pragma GCC target("avx2,fma")
#define VARIANT avx2
#define LANES 8
#define TILE_VECTORS 2
#define PRODUCT_ROWS 6
#include "variant.h"
#else
typedef int not_for_this_compiler;
#endif
