"""Interpretable adversarial training for text: AdvT, iAdvT, VAT, iVAT and SPGD.

    import interpretable_adv as ia
    model = ia.load('demo')     # a classifier: predict and attack texts, see `api`
    ia.METHODS                  # the table of methods
    ia.SPGD, ia.AdvT, ia.IAdvT  # the attacks
"""
import importlib
import os
from typing import TYPE_CHECKING, Any

# Before NumPy is loaded, for its OpenBLAS: a thread of it that has nothing to do spins for 2^n
# cycles before it sleeps. By default these are some 20 ms, on a core that the C kernels need.
os.environ.setdefault('OPENBLAS_THREAD_TIMEOUT', '20')

from interpretable_adv import compat  # noqa: E402, F401  (before the first import of Chainer)

__version__ = '1.1.0.dev0'

# What the package offers, and where it lives. Loaded when it is first asked for, so that importing
# the package does not import Chainer.
_API = {'load': 'api', 'Model': 'api', 'Prediction': 'api', 'Attack': 'api',
        'METHODS': 'methods', 'AttackSettings': 'methods', 'AdvT': 'attacks', 'IAdvT': 'attacks',
        'SPGD': 'attacks'}
__all__ = ['METHODS', 'SPGD', 'AdvT', 'Attack', 'AttackSettings', 'IAdvT', 'Model', 'Prediction',
           '__version__', 'load']

if TYPE_CHECKING:
    from interpretable_adv.api import Attack, Model, Prediction, load
    from interpretable_adv.attacks import SPGD, AdvT, IAdvT
    from interpretable_adv.methods import METHODS, AttackSettings


def __getattr__(name: str) -> Any:
    if name not in _API:
        raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
    return getattr(importlib.import_module(f'{__name__}.{_API[name]}'), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_API})
