"""Fixtures of the experiments' tests."""
import pytest

from tests.experiments import finished_runs


@pytest.fixture
def results_folder(tmp_path):
    """Two seeds of all methods at the paper's size."""
    accuracies = {'baseline': (89, 90), 'pretrained': (92, 92.5), 'adv': (93, 94),
                  'iadv': (93.5, 93), 'spgd': (92.5, 93.5)}
    folder = tmp_path / 'runs'
    for method, values in accuracies.items():
        for seed, value in zip((1, 2), values):
            finished_runs.write_classifier(folder, method, seed, value)
    finished_runs.write_lm(folder)
    finished_runs.write_table2(folder)
    finished_runs.write_perplexity(folder, seed=1)
    finished_runs.write_perplexity(folder, seed=2, shift=0.5)
    finished_runs.write_perplexity(folder, 'perplexity_sweep', sweep=True)
    finished_runs.write_perplexity(folder, 'perplexity_common_sweep', sweep=True)
    return folder
