/* Vectors of LANES floats, whatever the processor: 16 with AVX-512, 8 with AVX2, 4 otherwise.
 *
 * A file that includes this has chosen the processor (see plain.c, avx2.c, avx512.c). Sums and
 * products are GCC's vector extensions; the rest has an intrinsic where one exists. The
 * compiler must not fuse products and sums on its own (-ffp-contract=off): where that is
 * wanted, multiply_add says so, and where NumPy's rounding is wanted, nothing does. */
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

INLINE vector load(const float *from) { return *(const loose_vector *)from; }
INLINE void store(float *to, vector x) { *(loose_vector *)to = x; }
INLINE vector spread(float x) { return x - (vector){0}; }

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
INLINE vector multiply_add(vector a, vector b, vector c) { return a * b + c; }
INLINE vector square_root(vector x)
{
    for (int lane = 0; lane < LANES; lane++)
        x[lane] = sqrtf(x[lane]);
    return x;
}
INLINE vector smaller(vector a, vector b)
{
    for (int lane = 0; lane < LANES; lane++)
        a[lane] = a[lane] < b[lane] ? a[lane] : b[lane];
    return a;
}
INLINE vector larger(vector a, vector b)
{
    for (int lane = 0; lane < LANES; lane++)
        a[lane] = a[lane] > b[lane] ? a[lane] : b[lane];
    return a;
}
#endif

/* tanh(x) = x P(x²) / Q(x²), within 4e-7 of it relatively; tanh_coefficients.py derives P and Q.
 * Beyond 9.02 float32 has no number between tanh(x) and 1. A NaN stays one: the comparisons
 * below return their second operand for it, as the instructions do. */
INLINE vector vector_tanh(vector x)
{
    x = larger(spread(-9.02f), smaller(spread(9.02f), x));
    vector square = x * x;
    vector p = multiply_add(square, spread(1.331896365e-08f), spread(2.058340099e-05f));
    p = multiply_add(square, p, spread(3.494029651e-03f));
    p = multiply_add(square, p, spread(1.337971382e-01f));
    p = multiply_add(square, p, spread(9.999999790e-01f));
    vector q = multiply_add(square, spread(7.761974402e-07f), spread(3.283084819e-04f));
    q = multiply_add(square, q, spread(2.587105455e-02f));
    q = multiply_add(square, q, spread(4.671302907e-01f));
    q = multiply_add(square, q, spread(1.0f));
    return larger(spread(-1.0f), smaller(spread(1.0f), x * p / q));
}

/* sigmoid(2x), the half being in the weights already. */
INLINE vector sigmoid_of_double(vector x)
{
    return multiply_add(vector_tanh(x), spread(0.5f), spread(0.5f));
}
