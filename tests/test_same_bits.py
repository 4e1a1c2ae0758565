"""One digest for every kind of run, whatever the machine does: tests/data/digests.json.

Whoever runs the tests proves it for a machine of their own. `tests/deep.sh` adds other
interpreters and emulated processors.
"""
import json
import os
import platform
import subprocess
import sys

import pytest

from interpretable_adv.nn import kernels
from tests import same_bits

pytestmark = pytest.mark.skipif(not kernels.available, reason='NumPy has its own bits')

SETTINGS = {
    'as it is': {},
    '1 thread': {'OMP_NUM_THREADS': '1'},
    '2 threads': {'OMP_NUM_THREADS': '2'},
    '3 threads': {'OMP_NUM_THREADS': '3'},
    '4 threads': {'OMP_NUM_THREADS': '4', 'OPENBLAS_NUM_THREADS': '4'},
    'plain': {'INTERPRETABLE_ADV_KERNELS': 'plain', 'OMP_NUM_THREADS': '2'},
    'avx2': {'INTERPRETABLE_ADV_KERNELS': 'avx2'},
    'avx512': {'INTERPRETABLE_ADV_KERNELS': 'avx512'},
    'OpenBLAS for Haswell': {'OPENBLAS_CORETYPE': 'Haswell'},
    'OpenBLAS for Skylake-X': {'OPENBLAS_CORETYPE': 'SkylakeX'},
    'OpenBLAS for Prescott': {'OPENBLAS_CORETYPE': 'Prescott'},
    'NumPy without vectors': {'NPY_DISABLE_CPU_FEATURES': 'AVX2 FMA3 AVX512F AVX512CD AVX512_SKX'},
}


def recorded():
    with open(same_bits.RECORDED, encoding='utf-8') as stream:
        return json.load(stream)


def run(root, **environment):
    return subprocess.run([sys.executable, '-m', 'tests.same_bits'], cwd=root, text=True,
                          capture_output=True, env={**os.environ, **environment}, timeout=300)


@pytest.mark.parametrize('name', SETTINGS)
def test_every_run_has_its_recorded_digest(root, name):
    environment = SETTINGS[name]
    if environment.get('OPENBLAS_CORETYPE') == 'SkylakeX' and not _has('avx512f'):
        pytest.skip('this processor has no avx512: OpenBLAS would end on an unknown instruction')
    done = run(root, **environment)
    if 'this processor does not have it' in done.stderr:
        pytest.skip(f'this processor has no {name}')
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    variant = environment.get('INTERPRETABLE_ADV_KERNELS')
    assert found['variant'] == variant if variant else found['variant'] in kernels.VARIANTS
    assert found['digests'] == recorded()


def _has(feature):
    try:
        with open('/proc/cpuinfo', encoding='utf-8') as stream:
            return feature in stream.read()
    except OSError:
        return platform.machine() != 'x86_64'


def test_numpy_has_bits_of_its_own_and_says_so(root):
    found = json.loads(run(root, INTERPRETABLE_ADV_KERNELS='none').stdout)
    assert found['arithmetic'] == 'numpy'
    assert found['digests'].keys() == recorded().keys()
    assert found['digests'] != recorded()


def test_table1_does_not_depend_on_the_batch(tmp_path, monkeypatch, capsys):
    """Neither the classifier's batches nor the language model's change a bit of any number."""
    from interpretable_adv.evaluation import measures
    from lm import evaluation
    same_bits.digests(str(tmp_path))
    together = same_bits.table1_numbers(str(tmp_path))
    monkeypatch.setattr(measures, 'WORDS_PER_BATCH', 1)  # each review alone
    monkeypatch.setattr(evaluation, 'WORDS_PER_BATCH', 30)  # a few together
    assert same_bits.table1_numbers(str(tmp_path)) == together


def test_evaluation_does_not_depend_on_the_batch(tmp_path, capsys):
    from interpretable_adv import data, nets
    same_bits.digests(str(tmp_path))
    corpus = data.load(str(tmp_path / 'data'))
    model = nets.load_classifier(str(tmp_path / 'spgd' / 'best.model'), corpus.words)
    whole = nets.predict(model, corpus.test.sequences)
    for words in (1, 50, 300):
        assert (nets.predict(model, corpus.test.sequences, words) == whole).all()
