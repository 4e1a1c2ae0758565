"""The Python API on the stand-in: the predictions and records that NumPy gives."""
import pytest
from strict_cupy.test_analysis import assert_same

import interpretable_adv as ia
from interpretable_adv import train

TEXTS = ['word1 word2, word3', '', 'unheard word4 word1 word5']


@pytest.fixture(scope='module')
def run(corpus, tmp_path_factory):
    out = tmp_path_factory.mktemp('run')
    train.main(['--data_dir', str(corpus), '--out', str(out), '--method', 'adv', '--lower', '0',
                '--ignore_unk', '1', '--emb_dim', '6', '--hidden_dim', '7', '--hidden_cls_dim',
                '4', '--n_epoch', '2', '--batchsize', '8', '--alpha', '0.02', '--nn_k', '4',
                '--progress', 'off'])
    return out


def test_predictions_and_attacks(run):
    host, device = ia.load(run), ia.load(run, device='@cupy:0')
    for one, other in zip(host.predict(TEXTS), device.predict(TEXTS)):
        assert one.label == other.label and one.unknown == other.unknown
        assert_same(other.probabilities, one.probabilities)
    # Not VAT: its gradient is a difference of nearly equal numbers.
    for method in ('adv', 'iadv', 'spgd'):
        for one, other in zip(host.attack(TEXTS, method), device.attack(TEXTS, method)):
            assert_same(other.to_dict(), one.to_dict())
            assert other.direction_text == one.direction_text
