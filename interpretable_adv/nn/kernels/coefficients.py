"""Derives the polynomials in `functions.h`: run as a script to print them.

With r, f and x in the ranges that the functions reduce their arguments to,

    exp(r)   ≈ 1 + r + r² E(r)        |r| ≤ ln 2 / 2
    log(1+f) ≈ f + f² L(f)            √½ − 1 ≤ f ≤ √2 − 1
    tanh(x)  ≈ x + x³ T(x²)           |x| ≤ TANH_LIMIT

The coefficients minimise the largest relative error: Lawson's algorithm, i.e. least squares whose
weights grow where the error is large.
"""
import numpy as np

TANH_LIMIT = 0.625


def points(low, high, count=3001):
    """Arguments, dense at the ends; none is zero, where the equations say nothing."""
    x = (low + high) / 2 - (high - low) / 2 * np.cos(np.linspace(0, np.pi, count))
    return x[np.abs(x) > 1e-3 * high]


def fit(argument, target, weight, degree, iterations=300):
    """Coefficients of P(argument) ≈ target from the constant term up, and the error.

    The error to be kept small is weight · (P − target).
    """
    scale = np.abs(argument).max()
    powers = (argument / scale)[:, None] ** np.arange(degree + 1)
    emphasis = np.ones(len(argument))
    best = np.inf, None
    for _ in range(iterations):
        rows = np.sqrt(emphasis) * weight
        solution = np.linalg.lstsq(powers * rows[:, None], target * rows, rcond=None)[0]
        error = np.abs(weight * (powers @ solution - target))
        if error.max() < best[0]:
            best = error.max(), solution
        emphasis *= error / error.max() + 1e-3
        emphasis /= emphasis.sum()
    return best[1] / scale ** np.arange(degree + 1), best[0]


def fit_exp(degree=4):
    half = np.log(2) / 2
    r = points(-half, half)
    return fit(r, (np.expm1(r) - r) / r ** 2, r ** 2 / np.exp(r), degree)


def fit_log(degree=8):
    f = points(np.sqrt(0.5) - 1, np.sqrt(2) - 1)
    return fit(f, (np.log1p(f) - f) / f ** 2, f ** 2 / np.log1p(f), degree)


def fit_tanh(degree=4):
    x = points(0, TANH_LIMIT)
    return fit(x ** 2, (np.tanh(x) - x) / x ** 3, x ** 3 / np.tanh(x), degree)


if __name__ == '__main__':
    for name, derive in (('E', fit_exp), ('L', fit_log), ('T', fit_tanh)):
        coefficients, error = derive()
        print(f'{name}, relative error {error:.1e}:',
              ', '.join(f'{c:.9e}f' for c in coefficients))
