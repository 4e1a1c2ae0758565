/* Vectors of LANES floats, whatever the processor: 16 with AVX-512, 8 with AVX2, 4 otherwise.
 *
 * A file that includes this has chosen the processor (see plain.c, avx2.c, avx512.c). Every
 * operation here gives each lane the same bits on every processor, so a kernel whose definition
 * says what happens to each element is the same everywhere. The compiler must not fuse products
 * and sums on its own (-ffp-contract=off): multiply_add says where that is wanted.
 *
 * Denormal numbers are zero in all of this, see threads.h. */
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__AVX512F__) || (defined(__AVX2__) && defined(__FMA__))
#include <immintrin.h>
#endif

#define INLINE static inline __attribute__((always_inline))

/* may_alias and aligned(4): loads and stores take any float address. */
typedef float vector __attribute__((vector_size(4 * LANES)));
typedef float loose_vector __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef uint32_t bits __attribute__((vector_size(4 * LANES)));
typedef int32_t integers __attribute__((vector_size(4 * LANES)));  /* also of comparisons */

INLINE vector load(const float *from) { return *(const loose_vector *)from; }
INLINE void store(float *to, vector x) { *(loose_vector *)to = x; }
INLINE vector spread(float x) { return x - (vector){0}; }

/* The first `count` lanes; the others are zero when loaded and left alone when stored. */
INLINE vector load_part(const float *from, long count)
{
    vector x = {0};
    memcpy(&x, from, count * sizeof(float));
    return x;
}
INLINE void store_part(float *to, vector x, long count) { memcpy(to, &x, count * sizeof(float)); }

/* a where the mask is all ones, b where it is zero; a comparison makes such a mask. */
INLINE vector choose(integers mask, vector a, vector b)
{
    return (vector)((mask & (integers)a) | (~mask & (integers)b));
}

INLINE vector absolute(vector x) { return (vector)((bits)x & 0x7fffffffu); }
INLINE vector with_sign_of(vector size, vector sign)
{
    return (vector)((bits)size | ((bits)sign & 0x80000000u));
}

/* multiply_add(a, b, c) is a b + c, rounded once.
 * smaller and larger return their second operand when one is NaN. */
#if LANES == 16 && defined(__AVX512F__)
INLINE vector multiply_add(vector a, vector b, vector c) { return _mm512_fmadd_ps(a, b, c); }
INLINE vector square_root(vector x) { return _mm512_sqrt_ps(x); }
INLINE vector smaller(vector a, vector b) { return _mm512_min_ps(a, b); }
INLINE vector larger(vector a, vector b) { return _mm512_max_ps(a, b); }
#elif LANES == 8 && defined(__FMA__)
INLINE vector multiply_add(vector a, vector b, vector c) { return _mm256_fmadd_ps(a, b, c); }
INLINE vector square_root(vector x) { return _mm256_sqrt_ps(x); }
INLINE vector smaller(vector a, vector b) { return _mm256_min_ps(a, b); }
INLINE vector larger(vector a, vector b) { return _mm256_max_ps(a, b); }
#else
#ifdef __FP_FAST_FMAF
INLINE vector multiply_add(vector a, vector b, vector c)
{
    for (int lane = 0; lane < LANES; lane++)
        c[lane] = __builtin_fmaf(a[lane], b[lane], c[lane]);
    return c;
}
#else
/* Without an instruction for it, in double. The product is exact there. If the sum is not, its
 * last bit is made odd: with so many spare bits, rounding that to float rounds the exact sum. */
INLINE vector multiply_add(vector a, vector b, vector c)
{
    typedef double doubles __attribute__((vector_size(8 * LANES)));
    typedef uint64_t double_bits __attribute__((vector_size(8 * LANES)));
    doubles product = __builtin_convertvector(a, doubles) * __builtin_convertvector(b, doubles);
    doubles addend = __builtin_convertvector(c, doubles), sum = product + addend;
    doubles taken = sum - product;
    doubles error = (product - (sum - taken)) + (addend - taken);
    double_bits inexact = (double_bits)((error > 0) | (error < 0));  /* not for NaN */
    double_bits even = ((double_bits)sum & 1) - 1;
    double_bits toward_error = (double_bits)((error > 0) ^ (sum > 0)) | 1;  /* 1 or −1 */
    sum = (doubles)((double_bits)sum + (toward_error & inexact & even));
    return __builtin_convertvector(sum, vector);
}
#endif
INLINE vector square_root(vector x)
{
    for (int lane = 0; lane < LANES; lane++)
        x[lane] = sqrtf(x[lane]);
    return x;
}
INLINE vector smaller(vector a, vector b) { return choose(a < b, a, b); }
INLINE vector larger(vector a, vector b) { return choose(a > b, a, b); }
#endif
