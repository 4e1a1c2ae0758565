"""The language model that pretrains the classifier and scores perturbed reviews."""
import interpretable_adv  # noqa: F401  (its compat comes before the first import of Chainer)
