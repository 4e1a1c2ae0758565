"""Files of the version tagged `paper-size-1` stay readable, and its runs resume to the same bits.

`tests/data/paper_size_1` holds, of a classifier and of a language model trained by that version's
code: a snapshot made in the first epoch, the model after two epochs in one go, and its digest.
"""
import json
import shutil

import numpy as np
import pytest

from interpretable_adv import nets, train
from interpretable_adv.nn import kernels
from interpretable_adv.runs import checkpoints
from lm import pretrain
from lm.nets import load_lm

RUNS = {
    'classifier': (train.main, ['--n_epoch', '2', *(
        '--emb_dim 3 --hidden_dim 5 --hidden_cls_dim 2 --batchsize 16 --nn_k 3 --method spgd '
        '--xi_var 4 --update_nearest_batch 2 --snapshot_steps 3 --min_count 2 --alpha 0.02 '
        '--random_seed 6').split()]),
    'language_model': (pretrain.main, ['--epoch', '2', *(
        '--n-units-word 3 --unit 5 --batchsize 4 --bproplen 8 --random-seed 5 --adaptive-softmax '
        '--cutoffs 10 --snapshot_steps 7 --min_count 2').split()])}


@pytest.fixture(scope='module')
def old(root):
    return root / 'tests' / 'data' / 'paper_size_1'


@pytest.fixture(scope='module')
def recorded(old):
    return json.loads((old / 'digests.json').read_text())


@pytest.mark.parametrize('kind', RUNS)
def test_models_of_then_are_read(old, recorded, kind):
    path = old / kind / 'best.model'
    assert checkpoints.digest(checkpoints.read_arrays(path)) == recorded[kind]
    model = (nets.load_classifier if kind == 'classifier' else load_lm)(path)
    assert sum(parameter.size for parameter in model.params()) > 500


@pytest.mark.skipif(not kernels.available, reason='NumPy has its own bits')
@pytest.mark.parametrize('kind', RUNS)
def test_snapshots_of_then_resume_to_the_same_bits(root, old, recorded, tmp_path, capsys, kind):
    data, out = tmp_path / 'data', tmp_path / 'run'
    shutil.copytree(root / 'tests/data/golden/synthetic/mini_synthetic', data,
                    ignore=shutil.ignore_patterns('*.cache'))
    out.mkdir()
    shutil.copy(old / kind / 'snapshot.npz', out)
    main, flags = RUNS[kind]
    np.random.seed(0)
    main(['--data_dir', str(data), '--out', str(out), '--resume', *flags])
    assert 'resuming after' in capsys.readouterr().out
    assert json.loads((out / 'result.json').read_text())['digest'] == recorded[kind]
