"""methods.py: the table of methods, and that a row more is all that a new method takes."""
import itertools
import json
import re

import matplotlib.colors
import numpy as np
import pytest
from matplotlib.colors import to_hex

from experiments import presets
from interpretable_adv import analysis, attacks, data, methods, nets, paper, train, updaters
from interpretable_adv.errors import UserError
from interpretable_adv.evaluation import records, sweep
from interpretable_adv.methods import METHODS, AttackSettings, Method
from interpretable_adv.runs import checkpoints
from lm import perplexity
from lm.nets import RNNForLM

# The table ------------------------------------------------------------------------------------


def test_rows_are_found_by_their_own_names():
    assert all(row.name == name for name, row in METHODS.items())


def test_titles_are_unique():
    titles = [row.title for row in METHODS.values()]
    assert len(set(titles)) == len(titles)


def test_what_is_drawn_together_can_be_told_apart():
    drawn = [row for name, row in METHODS.items() if name != 'none']  # no plot shows `none`
    colors = [matplotlib.colors.to_rgb(row.color) for row in drawn]
    assert len(set(colors)) == len(colors)
    assert len({row.marker for row in METHODS.values()}) == len(METHODS)


def test_methods_are_in_the_order_of_the_papers_tables():
    for table in (paper.ACCURACY, paper.GAP, paper.EPSILON):
        assert set(table) <= set(METHODS)
    assert [name for name in METHODS if name in paper.ACCURACY] == list(paper.ACCURACY)
    assert [name for name in METHODS if name in paper.GAP] == list(paper.GAP)


def test_lists_of_methods():
    assert methods.trainable() == ['baseline', 'adv', 'iadv', 'spgd', 'vat', 'ivat']
    assert methods.classifiers() == ['baseline', 'pretrained', 'adv', 'iadv', 'spgd', 'spgd_lm',
                                     'vat', 'ivat']
    assert methods.attackers() == ['adv', 'iadv', 'spgd', 'spgd_lm', 'vat', 'ivat', 'none',
                                   'adv_sparse', 'random', 'hotflip', 'hotflip_greedy']
    assert methods.controls(['adv', 'spgd']) == ['adv_sparse', 'random']
    assert methods.controls(['spgd']) == []
    assert methods.swapping(['adv', 'spgd']) == ['hotflip', 'hotflip_greedy']
    assert methods.swapping(['adv']) == []
    assert [name for name, row in METHODS.items() if row.starts_from_lm] == [
        'pretrained', 'adv', 'iadv', 'spgd', 'spgd_lm', 'vat', 'ivat']


def test_attacks_by_swaps_cannot_train():
    for name in ('hotflip', 'hotflip_greedy'):
        with pytest.raises(UserError, match=name):
            train.parse(['--method', name])
        with pytest.raises(UserError, match='no method'):
            presets.check_method(name, 'a preset')


def test_a_control_has_the_papers_epsilon_of_its_method():
    assert METHODS['adv'].epsilon == METHODS['random'].epsilon == 5
    assert METHODS['adv_sparse'].epsilon == 5
    assert METHODS['spgd'].epsilon == 25 and METHODS['baseline'].epsilon is None
    assert METHODS['spgd_lm'].epsilon == 25 and METHODS['hotflip'].epsilon is None


CHOICES = {
    (0, 0, 0, 0): ['baseline'], (0, 1, 0, 0): ['baseline'],  # as upstream, which then does nothing
    (1, 0, 0, 0): ['adv'], (1, 1, 0, 0): ['iadv'],
    (0, 0, 1, 0): ['vat'], (0, 1, 1, 0): ['ivat'],
    (1, 0, 1, 0): ['adv', 'vat'], (1, 1, 1, 0): ['iadv', 'ivat'],  # both at once
    (1, 0, 0, 1): ['spgd'],
}


@pytest.mark.parametrize('switches', list(itertools.product((0, 1), repeat=4)))
def test_every_combination_of_upstreams_switches(switches):
    rows = methods.by_switches(switches)
    if switches in CHOICES:
        assert [row.name for row in rows] == CHOICES[switches]
    else:
        assert rows is None


@pytest.mark.parametrize('switches', CHOICES)
def test_switches_choose_the_methods_of_a_run(switches):
    argv = [f'--{name}={value}' for name, value in zip(methods.SWITCHES, switches)]
    flags = train.parse(argv)
    assert flags.method == '+'.join(CHOICES[switches])
    assert tuple(getattr(flags, name) for name in methods.SWITCHES) == switches


def test_an_attack_gets_what_it_uses_and_no_more():
    def attack(epsilon, **options):
        return epsilon, options

    settings = AttackSettings(2.0, level='word', first_scale=3.0, mask_eos=True, sparsity=0.5,
                              seed=7, iterations=4)
    shared = {'level': 'word', 'first_scale': 3.0, 'mask_eos': True}
    row = Method('a', 'A', 'red', 'o', attack=attack)
    assert row.build_attack(settings, 'table', 'noise') == (2.0, shared)
    assert row.settings == ('level', 'first_scale', 'mask_eos')
    row = Method('a', 'A', 'red', 'o', attack=attack, uses=('sparsity', 'seed'))
    assert row.build_attack(settings) == (2.0, {**shared, 'sparsity': 0.5, 'seed': 7})
    row = Method('a', 'A', 'red', 'o', attack=attack, guided=True)
    assert row.build_attack(settings, guide='guide') == (2.0, {**shared, 'guide': 'guide'})
    assert row.settings == (*shared, 'class_lm', 'class_lm_weight')
    row = Method('a', 'A', 'red', 'o', attack=lambda **options: options, uses=('sparsity',),
                 swaps=True, needs_neighbors=True)
    assert row.build_attack(settings, 'table') == {'neighbors': 'table', 'sparsity': 0.5}
    assert row.settings == ('k', 'k_offset', 'limit_vocabulary', 'sparsity')
    row = Method('a', 'A', 'red', 'o', attack=attack, needs_neighbors=True, virtual=True)
    assert row.build_attack(settings, 'table', 'noise') == (
        2.0, {**shared, 'neighbors': 'table', 'virtual': True, 'noise': 'noise'})
    assert row.settings == (*shared, 'k', 'k_offset', 'limit_vocabulary')


def test_every_attack_of_the_table_can_be_built():
    settings = AttackSettings(2.0, sparsity=0.5, iterations=3, step=1.5, toward_only=True,
                              rank='projected', directions='dropout', seed=9)
    built = {name: METHODS[name].build_attack(settings, 'table') for name in methods.attackers()}
    spgd = built['spgd']
    assert (spgd.epsilon, spgd.sparsity, spgd.iterations, spgd.toward_only, spgd.rank,
            spgd.directions, spgd.neighbors) == (1.5, 0.5, 3, True, 'projected', 'dropout', 'table')
    assert built['adv'].epsilon == 2.0 and not built['adv'].virtual
    assert built['vat'].virtual and built['ivat'].virtual and built['ivat'].neighbors == 'table'
    assert built['adv_sparse'].sparsity == 0.5 and built['random'].seed == 9
    for name in ('hotflip', 'hotflip_greedy'):
        assert (built[name].sparsity, built[name].neighbors) == (0.5, 'table')


# A new method ---------------------------------------------------------------------------------

EMB_DIM = 8


class SignAttack(attacks.AdvT):
    """Moves every number of every word by ε, whatever the gradient's size."""

    def _step(self, gradient, lengths):
        return (self.epsilon * np.where(gradient < 0, -1, 1)).astype('f')


class HalfAttack(attacks.AdvT):
    """Half of AdvT."""

    def _step(self, gradient, lengths):
        return super()._step(gradient, lengths) / 2


SIGN = Method('sign', 'Sign of the gradient', '#123456', '*', trained_by='sign',
              updater=updaters.AdversarialUpdater, attack=SignAttack)
HALF = Method('half', 'AdvT-Text, halved', '#654321', '8', attack=HalfAttack, control_of='adv')


@pytest.fixture
def new_methods(monkeypatch):
    monkeypatch.setitem(METHODS, 'sign', SIGN)
    monkeypatch.setitem(METHODS, 'half', HALF)


@pytest.fixture(scope='module')
def corpus(golden):
    return golden / 'synthetic' / 'mini_synthetic'


@pytest.fixture(scope='module')
def run(corpus, tmp_path_factory):
    """The folder of a run of the new method."""
    out = tmp_path_factory.mktemp('run') / 'sign'
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(METHODS, 'sign', SIGN)
        train.main(['--data_dir', str(corpus), '--out', str(out), '--method', 'sign', '--lower',
                    '0', '--ignore_unk', '1', '--emb_dim', str(EMB_DIM), '--hidden_dim', '10',
                    '--hidden_cls_dim', '5', '--batchsize', '16', '--n_epoch', '2', '--xi_var',
                    '0.25', '--dropout', '0', '--log_steps', '1', '--progress', 'off'])
    return out


def test_without_its_row_there_is_no_such_method():
    with pytest.raises(UserError, match='sign'):
        train.parse(['--method', 'sign'])


def test_a_new_method_trains(run, new_methods):
    result = json.loads((run / 'result.json').read_text())
    assert result['method'] == 'sign'
    args = json.loads((run / 'args.json').read_text())
    assert args['method'] == 'sign' and args['xi_var'] == 0.25
    assert [args[name] for name in methods.SWITCHES] == [0, 0, 0, 0]
    steps = [json.loads(line) for line in (run / 'steps.jsonl').read_text().splitlines()]
    assert len(steps) == 10
    for step in steps:
        assert set(step) == {'step', 'loss', 'loss_clean', 'loss_first', 'loss_adv'}
        assert step['loss_adv'] > step['loss_first'] == pytest.approx(step['loss_clean'])
        assert step['loss'] == pytest.approx(step['loss_clean'] + step['loss_adv'], rel=1e-5)
    assert (run / 'best.model').exists()
    assert 'sign' in train.make_parser().format_help()


def test_a_new_method_has_records(run, new_methods, corpus, tmp_path):
    analysis.main(['--model', str(run / 'best.model'), '--data_dir', str(corpus), '--out',
                   str(tmp_path / 'r.jsonl'), '--methods', 'sign,adv,half', '--limit', '3',
                   '--nn_k', '4'])
    reviews, _ = records.read_reviews(str(tmp_path / 'r.jsonl'))
    assert len(reviews) == 3
    for review in reviews:
        by_method = {record['method']: record for record in review}
        assert list(by_method) == ['adv', 'sign', 'half']  # the order of the table
        sign, adv, half = by_method['sign'], by_method['adv'], by_method['half']
        assert records.method_name(sign) == 'Sign of the gradient'
        assert sign['epsilon'] == 0.25  # what it was trained with
        assert adv['epsilon'] == half['epsilon'] == 5.0  # the paper's, of AdvT
        for word in sign['words']:
            assert word['norm'] == pytest.approx(0.25 * EMB_DIM ** 0.5, rel=1e-5)
        for word, other in zip(half['words'], adv['words']):
            assert word['norm'] == pytest.approx(other['norm'] / 2, rel=1e-4)


def test_a_new_method_asks_for_its_step_size(new_methods, corpus, tmp_path):
    """Where its classifier was trained in another way, nothing says how large it is."""
    np.random.seed(0)
    path = tmp_path / 'best.model'
    checkpoints.save_classifier(str(path), nets.Classifier(
        data.load(str(corpus)).n_vocab, EMB_DIM, 10, 5))
    flags = ['--model', str(path), '--data_dir', str(corpus), '--out', str(tmp_path / 'r.jsonl'),
             '--methods', 'sign', '--limit', '3', '--nn_k', '4', '--lower', '0', '--ignore_unk',
             '1']
    with pytest.raises(UserError, match='--epsilon sign=E'):
        analysis.main(flags)
    analysis.main([*flags, '--epsilon', 'sign=2'])
    (review, *_), _ = records.read_reviews(str(tmp_path / 'r.jsonl'))
    assert review[0]['epsilon'] == 2


@pytest.fixture(scope='module')
def language_model(corpus, tmp_path_factory):
    folder = tmp_path_factory.mktemp('lm')
    np.random.seed(0)
    checkpoints.save_lm(str(folder / 'best.model'),
                        RNNForLM(data.load(str(corpus)).n_vocab, 8, EMB_DIM))
    return folder / 'best.model'


def test_a_new_method_has_rows_and_a_line_in_the_plot(
        run, new_methods, corpus, language_model, tmp_path, capsys):
    perplexity.main(['--lm', str(language_model), '--model', str(run / 'best.model'), '--data_dir',
                     str(corpus), '--methods', 'none,adv,sign,half', '--n_samples', '10', '--json',
                     str(tmp_path / 'table.json'), '--sweep_epsilon', '0.5,1'])
    result = json.loads((tmp_path / 'table.json').read_text())
    rows = {row['method']: row for row in result['rows']}
    assert list(rows) == ['none', 'adv', 'sign', 'half']
    assert rows['sign']['epsilon'] == 0.25 and rows['half']['epsilon'] == 5.0
    assert rows['sign']['norm_per_word'] == pytest.approx(0.25 * EMB_DIM ** 0.5, rel=1e-5)
    assert rows['half']['norm_per_word'] == pytest.approx(rows['adv']['norm_per_word'] / 2,
                                                          rel=1e-4)
    assert rows['sign']['settings'] == {'xi_var': 0.25, 'norm_sentence_level': 1,
                                        'xi_var_first': 1.0, 'mask_eos': 0}
    assert set(result['gap_at_flip_rate']['continuous']) == {'adv', 'sign', 'half'}
    assert re.search(r'^sign +0\.25 ', capsys.readouterr().out, re.MULTILINE)
    assert (tmp_path / 'table.png').read_bytes().startswith(b'\x89PNG')

    figure = sweep.make_figure(result['sweep'], ['adv', 'sign', 'half'], ['continuous'])
    line = next(line for line in figure.axes[0].lines if line.get_label() == SIGN.title)
    assert to_hex(line.get_color()) == '#123456' and line.get_marker() == '*'
    points = [(row['scores']['continuous']['flipped'], row['scores']['continuous']['gap'])
              for row in result['sweep'] if row['method'] == 'sign']
    np.testing.assert_array_equal(line.get_xydata(), points)
    assert [row['epsilon'] for row in result['sweep'] if row['method'] == 'sign'] == [0.5, 1.0]


def test_a_new_method_is_in_the_lists(new_methods):
    assert 'sign' in methods.trainable() and 'half' not in methods.trainable()
    assert methods.attackers()[-2:] == ['sign', 'half']
    assert methods.controls(['adv'])[-1] == 'half'
    assert METHODS['half'].epsilon == 5 and METHODS['sign'].epsilon is None
