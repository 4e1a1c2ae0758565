/* 32 registers of 16 floats: tiles of 6 rows by 4 vectors, in products 12 by 2. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#pragma GCC target("avx512f,avx512dq,avx512bw,avx512vl,avx2,fma")
#define VARIANT avx512
#define LANES 16
#define TILE_VECTORS 4
#define PRODUCT_ROWS 12
#include "variant.h"
#else
typedef int not_for_this_compiler;
#endif
