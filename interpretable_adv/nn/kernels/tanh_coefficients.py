"""Derives the coefficients of `vector_tanh` in `vector.h`: run as a script to print them.

tanh(x) ≈ x P(x²) / Q(x²) on |x| ≤ LIMIT, where float32 rounds tanh to 1. The coefficients
minimise the largest relative error: Lawson's algorithm, i.e. weighted least squares on
x P − tanh(x) Q = tanh(x) (with Q's constant term 1) whose weights grow where the error is large.
"""
import numpy as np

LIMIT = 9.02
P_DEGREE, Q_DEGREE = 4, 4


def fit(iterations=400):
    """Coefficients of P and Q from the constant term up, in float64."""
    angles = np.linspace(0, np.pi, 4001)
    x = LIMIT / 2 * (1 - np.cos(angles))[1:]
    # Powers of (x / LIMIT)² keep the equations well conditioned.
    powers = (x / LIMIT)[:, None] ** (2 * np.arange(max(P_DEGREE, Q_DEGREE) + 1))
    target = np.tanh(x) / x
    system = np.concatenate([powers[:, :P_DEGREE + 1],
                             -target[:, None] * powers[:, 1:Q_DEGREE + 1]], axis=1)
    weights, denominator = np.ones(len(x)), np.ones(len(x))
    best = (np.inf, None)
    for _ in range(iterations):
        rows = np.sqrt(weights) / (target * denominator)
        solution = np.linalg.lstsq(system * rows[:, None], target * rows, rcond=None)[0]
        p, q = solution[:P_DEGREE + 1], np.concatenate(([1], solution[P_DEGREE + 1:]))
        denominator = powers[:, :Q_DEGREE + 1] @ q
        error = np.abs(powers[:, :P_DEGREE + 1] @ p / denominator / target - 1)
        if error.max() < best[0]:
            best = error.max(), (p, q)
        weights *= error / error.max() + 1e-3
        weights /= weights.sum()
    return tuple(c / LIMIT ** (2 * np.arange(len(c))) for c in best[1])


if __name__ == '__main__':
    for name, coefficients in zip('PQ', fit()):
        print(name, ', '.join(f'{c:.9e}f' for c in coefficients))
