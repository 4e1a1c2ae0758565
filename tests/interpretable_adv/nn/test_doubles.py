import math

import numpy as np
import pytest

from interpretable_adv.nn import doubles


def test_exp_is_rounded_to_nearest():
    # NumPy's own gives …555 for the first with AVX-512 and …558 with AVX2.
    assert doubles.exp(5.112449861891746) == 166.07672193106558
    assert doubles.exp(1.0) == 2.718281828459045
    assert doubles.exp(0.5) == 1.6487212707001282


@pytest.mark.parametrize('x, expected', [
    (0, 1), (-math.inf, 0), (math.inf, math.inf), (710, math.inf), (1e300, math.inf), (-1e300, 0)])
def test_exp_at_the_ends(x, expected):
    assert doubles.exp(x) == expected


def test_exp_of_arrays():
    x = np.array([[0, 1.5, -3], [700, math.nan, 1e-9]])
    result = doubles.exp(x)
    assert result.dtype == np.float64
    np.testing.assert_allclose(result, np.exp(x), rtol=3e-16)
    for shape in ((0,), (1,), (1, 1), ()):
        assert doubles.exp(np.zeros(shape)).shape == shape
    assert isinstance(doubles.exp(2), float)


@pytest.mark.parametrize('base', [0.9998, 0.999, 0.5, 1.0])
def test_power(base):
    for exponent in (0, 1, 2, 7, 664, 19920, 100000):
        assert doubles.power(base, exponent) == pytest.approx(base ** exponent, rel=3e-16)
    assert doubles.power(0.5, 1000) == 0.5 ** 1000
