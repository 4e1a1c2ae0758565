/* exp, log, tanh and sigmoid of each lane, within 2 units in the last place.
 *
 * Each is a fixed sequence of exact operations, so all processors agree on every bit.
 * coefficients.py derives the polynomials. A NaN stays one. */

/* exp(x) = 2ⁿ exp(r) with n = x / ln 2 rounded and r = x − n ln 2, where
 * exp(r) = 1 + r + r² E(r). Adding 3 · 2²² moves n into the last bits of the sum.
 * ln 2 is given as the nearest float and what that lacks. */
#define ROUND_BY_ADDING 12582912.0f
#define LN2_HIGH 0x1.62e43p-1f
#define LN2_LOW -0x1.05c610p-29f

INLINE vector exp_polynomial(vector x, vector n)
{
    vector r = multiply_add(n, spread(-LN2_HIGH), x);
    r = multiply_add(n, spread(-LN2_LOW), r);
    vector e = multiply_add(r, spread(1.381461322e-03f), spread(8.368709959e-03f));
    e = multiply_add(r, e, spread(4.166838737e-02f));
    e = multiply_add(r, e, spread(1.666652069e-01f));
    e = multiply_add(r, e, spread(4.999999345e-01f));
    return multiply_add(r * r, e, r) + spread(1.0f);
}

/* For |x| ≤ 88, where 2ⁿ is a float or 0. */
INLINE vector moderate_exp(vector x)
{
    vector sum = multiply_add(x, spread(1.442695041f), spread(ROUND_BY_ADDING + 127));
    vector power = (vector)((bits)sum << 23);
    return exp_polynomial(x, sum - spread(ROUND_BY_ADDING + 127)) * power;
}

/* For all x: infinite from 88.73 on, 0 where the result is denormal. 2ⁿ is made of two factors. */
INLINE vector vector_exp(vector x)
{
    x = larger(spread(-104.0f), smaller(spread(89.0f), x));
    vector sum = multiply_add(x, spread(1.442695041f), spread(ROUND_BY_ADDING));
    bits n = (bits)sum - (bits)spread(ROUND_BY_ADDING);
    bits half = (bits)((integers)n >> 1);
    vector result = exp_polynomial(x, sum - spread(ROUND_BY_ADDING));
    result *= (vector)((half + 127) << 23);
    return result * (vector)((n - half + 127) << 23);
}

/* log(x) = n ln 2 + log(1 + f) with x = 2ⁿ (1 + f), √½ ≤ 1 + f < √2, where
 * log(1 + f) = f + f² L(f). −∞ at 0 and below the normal numbers, NaN below 0. */
INLINE vector vector_log(vector x)
{
    const uint32_t root_half = 0x3f3504f3;  /* √½ */
    bits shifted = (bits)x - root_half;
    integers n = (integers)shifted >> 23;
    vector f = (vector)((shifted & 0x7fffff) + root_half) - spread(1.0f);
    vector exponent = __builtin_convertvector(n, vector);
    vector l = multiply_add(f, spread(-7.621860617e-02f), spread(1.290450161e-01f));
    l = multiply_add(f, l, spread(-1.324298698e-01f));
    l = multiply_add(f, l, spread(1.418181321e-01f));
    l = multiply_add(f, l, spread(-1.660908108e-01f));
    l = multiply_add(f, l, spread(2.000197459e-01f));
    l = multiply_add(f, l, spread(-2.500158307e-01f));
    l = multiply_add(f, l, spread(3.333332568e-01f));
    l = multiply_add(f, l, spread(-4.999998834e-01f));
    vector result = multiply_add(exponent, spread(LN2_LOW), f * f * l) + f;
    result = multiply_add(exponent, spread(LN2_HIGH), result);
    result = choose(x < spread(INFINITY), result, x);             /* ∞ and NaN */
    result = choose(x < spread(0x1p-126f), spread(-INFINITY), result);
    return choose(x <= spread(-0x1p-126f), spread(NAN), result);
}

/* tanh(x) = x + x³ T(x²) up to 0.625, and 1 − 2 / (exp(2 |x|) + 1) with the sign of x beyond.
 * Beyond 9.02 float32 has no number between tanh(x) and 1. */
INLINE vector vector_tanh(vector x)
{
    vector square = x * x;
    vector t = multiply_add(square, spread(-5.704984024e-03f), spread(2.063908471e-02f));
    t = multiply_add(square, t, spread(-5.373971435e-02f));
    t = multiply_add(square, t, spread(1.333144219e-01f));
    t = multiply_add(square, t, spread(-3.333328194e-01f));
    vector near = multiply_add(square * t, x, x);
    vector size = smaller(spread(9.02f), absolute(x));
    vector far = spread(1.0f) - spread(2.0f) / (moderate_exp(size + size) + spread(1.0f));
    return choose(absolute(x) < spread(0.625f), near, with_sign_of(far, x));
}

/* sigmoid(2x) = 1 / (1 + exp(−2x)), the two being left out of the weights. Beyond 44 it is 1, or
 * denormal and so 0. */
INLINE vector sigmoid_of_double(vector x)
{
    x = larger(spread(-44.0f), smaller(spread(44.0f), x));
    return spread(1.0f) / (spread(1.0f) + moderate_exp(spread(-2.0f) * x));
}
