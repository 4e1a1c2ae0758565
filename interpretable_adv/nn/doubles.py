"""Functions in double precision, to the same bits on every machine.

Those of NumPy and the C library differ in the last bit between processors. These are taken with 25
decimal digits and rounded once.
"""
import decimal

import numpy as np

_DIGITS = decimal.Context(prec=25, traps=[])


def exp(x):
    """`exp` of a number or array; infinite where that is too large."""
    return np.asarray(_exp(np.asarray(x, np.float64)), np.float64)[()]


def power(base, exponent):
    """`base ** exponent` of two numbers, the base not negative."""
    return float(_DIGITS.power(decimal.Decimal(base), decimal.Decimal(exponent)))


def _exp_of_one(x):
    return float(_DIGITS.exp(decimal.Decimal(x)))


_exp = np.frompyfunc(_exp_of_one, 1, 1)
