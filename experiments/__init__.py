"""From a preset to the paper's tables and figures: plan, run, measure, print.

`bash experiments/reproduce.sh` and its siblings call `python -m experiments`; see README.md.
"""
import interpretable_adv  # noqa: F401  (it comes before the first import of NumPy)
