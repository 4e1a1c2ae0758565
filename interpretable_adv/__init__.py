"""Interpretable adversarial training for text: AdvT, iAdvT, VAT, iVAT and SPGD."""
from interpretable_adv import compat  # noqa: F401  (before the first import of Chainer)

__version__ = '1.0.0'
