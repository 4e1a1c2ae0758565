"""settings.py: which value a setting has, of those that a flag, a run and the paper offer."""
import argparse
import dataclasses
import json

import pytest

from interpretable_adv import analysis, evaluate, methods, settings, train
from interpretable_adv.errors import UserError
from interpretable_adv.methods import AttackSettings
from lm import perplexity, pretrain


@pytest.fixture
def model(tmp_path):
    """Makes the folder of a run, of which only its `args.json` counts; returns a model's path."""
    def make(name, **arguments):
        (tmp_path / name).mkdir()
        (tmp_path / name / 'args.json').write_text(json.dumps(arguments))
        return str(tmp_path / name / 'best.model')
    return make


def resolve(models, argv=(), epsilons=None, seed=3, **options):
    return settings.resolve_attacks(analysis.make_parser, list(argv), models, epsilons or {}, seed,
                                    **options)


# Precedence -----------------------------------------------------------------------------------

# A flag, what a run was trained with, what the command line says, and the setting they give.
VALUES = [
    ('norm_sentence_level', 0, '1', 'level', ('sentence', 'word', 'sentence')),
    ('xi_var_first', 2.0, '3', 'first_scale', (1.0, 2.0, 3.0)),
    ('mask_eos', 1, '0', 'mask_eos', (False, True, False)),
    ('nn_k', 6, '3', 'k', (15, 6, 3)),
    ('nn_k_offset', 0, '2', 'k_offset', (1, 0, 2)),
    ('use_limit_vocab', 0, '1', 'limit_vocabulary', (True, False, True)),
    ('sparsity', 0.5, '0.25', 'sparsity', (0.75, 0.5, 0.25)),
    ('spgd_iters', 2, '4', 'iterations', (1, 2, 4)),
    ('spgd_step', 1.5, '0.5', 'step', (None, 1.5, 0.5)),
    ('spgd_toward_only', 1, '0', 'toward_only', (False, True, False)),
    ('sparsity_rank', 'projected', 'raw', 'rank', ('raw', 'projected', 'raw')),
    ('class_lm_weight', 0.1, '0.01', 'class_lm_weight', (1.0, 0.1, 0.01)),
]


@pytest.mark.parametrize('flag, trained, given, name, expected', VALUES,
                         ids=[row[0] for row in VALUES])
def test_a_flag_counts_before_the_run_and_the_run_before_the_default(
        model, flag, trained, given, name, expected):
    bare, run = model('bare'), model('run', method='spgd', **{flag: trained})
    found = (resolve({'spgd': bare}), resolve({'spgd': run}),
             resolve({'spgd': run}, [f'--{flag}', given]))
    values = tuple(getattr(attacks['spgd'], name) for attacks in found)
    assert values == expected
    assert [type(value) for value in values] == [type(value) for value in expected]


def test_all_settings_of_attacks_are_covered_here():
    names = {row[3] for row in VALUES} | {'epsilon', 'directions', 'class_lm', 'seed'}
    assert names == {field.name for field in dataclasses.fields(AttackSettings)}


def test_directions_come_from_the_run_alone(model):
    assert resolve({'spgd': model('bare')})['spgd'].directions == 'clean'
    run = model('run', spgd_directions='dropout')
    assert resolve({'spgd': run})['spgd'].directions == 'dropout'


def test_without_a_description_of_the_run_the_defaults_count(tmp_path):
    found = resolve({'adv': str(tmp_path / 'best.model')})
    assert found == {'adv': AttackSettings(5.0, k=15, seed=3)}  # the paper's


def test_epsilon_by_precedence(model):
    bare, run = model('bare'), model('run', method='adv', xi_var=7.0)
    assert resolve({'adv': bare})['adv'].epsilon == 5.0  # the paper's
    assert resolve({'adv': run})['adv'].epsilon == 7.0
    assert resolve({'adv': run}, ['--xi_var', '2'])['adv'].epsilon == 2.0
    assert resolve({'adv': run}, ['--xi_var', '2'], {'adv': 3.0})['adv'].epsilon == 3.0
    assert resolve({'adv': run}, [], {'adv': 0.0})['adv'].epsilon == 0.0
    assert resolve({'adv': run}, [], {'iadv': 3.0})['adv'].epsilon == 7.0


def test_another_methods_epsilon_is_no_ones(model):
    run = model('run', method='adv', xi_var=7.0, nn_k=4)
    found = resolve(dict.fromkeys(('adv', 'iadv', 'spgd', 'vat', 'ivat'), run))
    assert {method: attack.epsilon for method, attack in found.items()} == {
        'adv': 7.0, 'iadv': 15.0, 'spgd': 25.0, 'vat': 5.0, 'ivat': 15.0}
    assert {attack.k for attack in found.values()} == {4}  # but its neighbours are


def test_upstreams_way_of_asking_has_upstreams_epsilon(model):
    run = model('run', method='adv', xi_var=7.0)
    assert resolve({'adv': run}, upstream_defaults=True)['adv'] == AttackSettings(1.0, k=10, seed=3)
    assert resolve({'adv': run}, ['--xi_var', '4'], upstream_defaults=True)['adv'].epsilon == 4.0
    assert resolve({'adv': run}, [], {'adv': 3.0}, upstream_defaults=True)['adv'].epsilon == 3.0


def test_nothing_has_no_epsilon(model):
    run = model('run', method='adv', xi_var=7.0)
    for argv, epsilons in (([], {}), (['--xi_var', '2'], {}), ([], {'none': 3.0})):
        assert resolve({'none': run}, argv, epsilons)['none'].epsilon == 0.0


def test_each_method_has_the_settings_of_its_own_classifier(model):
    found = resolve({'iadv': model('i', method='iadv', xi_var=2.0, nn_k=3, spgd_iters=5),
                     'spgd': model('s', method='spgd', xi_var=4.0, nn_k=8)})
    assert (found['iadv'].epsilon, found['iadv'].k, found['iadv'].iterations) == (2.0, 3, 5)
    assert (found['spgd'].epsilon, found['spgd'].k, found['spgd'].iterations) == (4.0, 8, 1)


def test_controls_borrow_advts_epsilon_and_spgds_sparsity(model):
    adv = model('a', method='adv', xi_var=3.0, sparsity=0.9, norm_sentence_level=0)
    spgd = model('s', method='spgd', xi_var=8.0, sparsity=0.5)
    models = {'adv_sparse': adv, 'random': adv, 'adv': adv, 'spgd': spgd}  # in any order
    found = resolve(models, seed=11)
    assert list(found) == list(models)
    assert found['adv_sparse'] == dataclasses.replace(found['adv'], sparsity=0.5)
    assert found['random'] == found['adv'] and found['random'].seed == 11
    assert found['adv'].epsilon == 3.0 and found['adv'].sparsity == 0.9
    assert found['adv'].level == 'word' and found['spgd'].level == 'sentence'

    found = resolve(models, ['--sparsity', '0.25'], {'adv': 1.0, 'adv_sparse': 2.0})
    assert {attack.sparsity for attack in found.values()} == {0.25}
    assert (found['adv'].epsilon, found['adv_sparse'].epsilon) == (1.0, 2.0)
    assert found['random'].epsilon == 3.0  # `parse_epsilons` has filled in AdvT's, if at all


def test_controls_without_the_method_to_borrow_from(model):
    adv = model('a', method='adv', xi_var=3.0, sparsity=0.9)
    assert resolve({'adv_sparse': adv})['adv_sparse'].sparsity == 0.9
    assert resolve({'adv_sparse': adv})['adv_sparse'].epsilon == 3.0
    other = model('b', method='iadv', xi_var=4.0)
    assert resolve({'random': other})['random'].epsilon == 5.0  # the paper's of AdvT


def test_the_seed_is_the_commands(model):
    assert resolve({'vat': model('run', random_seed=99)}, seed=42)['vat'].seed == 42


# Values per method ----------------------------------------------------------------------------

@pytest.mark.parametrize('text, expected', [
    ('', {}), ('  ', {}),
    ('m', {'adv': 'm', 'iadv': 'm'}),
    (' m ', {'adv': 'm', 'iadv': 'm'}),
    ('a=b/c,d', {'adv': 'a=b/c,d', 'iadv': 'a=b/c,d'}),  # a path may look like this
    ('adv=x, iadv=y', {'adv': 'x', 'iadv': 'y'}),
    ('adv=x=1,iadv=y,spgd=z', {'adv': 'x=1', 'iadv': 'y'}),
    (' iadv = y , adv = x ,', {'adv': 'x', 'iadv': 'y'}),
])
def test_values_per_method(text, expected):
    assert settings.per_method(text, ['adv', 'iadv'], '--model') == expected


@pytest.mark.parametrize('text, expected', [
    ('p.model', {'none': 'p.model', 'adv': 'p.model', 'random': 'p.model'}),
    ('adv=a,spgd=b', {'none': 'a', 'adv': 'a', 'random': 'a'}),
    ('spgd=b,adv=a,random=c', {'none': 'b', 'adv': 'a', 'random': 'c'}),
    ('adv=a,none=n', {'none': 'n', 'adv': 'a', 'random': 'a'}),
    ('spgd=b', None), ('adv=a,b', None), ('adv=', None), ('adv=a,pgd=b', None)])
def test_values_of_controls_and_of_nothing(text, expected):
    names = ['none', 'adv', 'random']
    if expected is None:
        with pytest.raises(UserError, match='--model'):
            settings.per_method(text, names, '--model')
    else:
        found = settings.per_method(text, names, '--model')
        assert found == expected and list(found) == names


def test_a_missing_value_is_named_or_left_out():
    with pytest.raises(UserError, match='--model .* for the method iadv: add iadv=…'):
        settings.per_method('adv=a', ['adv', 'iadv'], '--model')
    assert settings.per_method('adv=a', ['adv', 'iadv'], '--model', required=False) == {'adv': 'a'}
    with pytest.raises(UserError, match='--model b: give --model as one value or as adv=…'):
        settings.per_method('adv=a,b', ['adv'], '--model', required=False)


@pytest.mark.parametrize('text, expected', [
    ('', {}), ('3', {'adv': 3.0, 'spgd': 3.0, 'random': 3.0}), ('0', dict.fromkeys(
        ('adv', 'spgd', 'random'), 0.0)),
    ('adv=1.5,spgd=2e1', {'adv': 1.5, 'spgd': 20.0, 'random': 1.5}),
    ('spgd=4', {'spgd': 4.0}), ('random=2,iadv=9', {'random': 2.0})])
def test_epsilons(text, expected):
    found = settings.parse_epsilons(text, ['adv', 'spgd', 'random'])
    assert found == expected
    assert all(isinstance(value, float) for value in found.values())


@pytest.mark.parametrize('text, named', [
    ('much', 'much'), ('-1', '-1'), ('nan', 'nan'), ('inf', 'inf'), ('adv=x', 'x'),
    ('adv=-0.5', '-0.5'), ('adv=1,2', '2'), ('1,2', '1,2'), ('adv=', 'adv=')])
def test_impossible_epsilons_are_named(text, named):
    with pytest.raises(UserError, match=f'^--epsilon {named}: give '):
        settings.parse_epsilons(text, ['adv', 'spgd'])


# A run's description --------------------------------------------------------------------------

def test_a_run_is_read_beside_its_model(model, monkeypatch, tmp_path):
    path = model('run', nn_k=4, method='é')
    assert settings.read_run(path) == {'nn_k': 4, 'method': 'é'}
    monkeypatch.chdir(tmp_path / 'run')
    assert settings.read_run('best.model') == {'nn_k': 4, 'method': 'é'}
    assert settings.read_run(str(tmp_path / 'best.model')) == {}
    assert settings.read_run(str(tmp_path / 'nowhere' / 'best.model')) == {}


@pytest.mark.parametrize('content', [
    b'', b'{"nn_k": 4', b'nn_k = 4', b'{"a": "\xff"}', b'[' * 100_000, b'[]', b'null', b'7',
    b'"text"'])
def test_a_damaged_description_is_refused(tmp_path, content):
    (tmp_path / 'args.json').write_bytes(content)
    with pytest.raises(UserError, match='args.json is damaged.*restore it') as caught:
        settings.read_run(str(tmp_path / 'best.model'))
    assert str(tmp_path) in str(caught.value)


def test_a_description_that_cannot_be_read_is_refused(tmp_path):
    (tmp_path / 'args.json').mkdir()
    with pytest.raises(UserError, match='cannot read .*args.json'):
        settings.read_run(str(tmp_path / 'best.model'))


@pytest.mark.parametrize('flag, value', [
    ('nn_k', 'many'), ('nn_k', 0), ('nn_k', 2.5), ('nn_k', None), ('nn_k', True), ('nn_k', [4]),
    ('nn_k_offset', -1), ('sparsity', 1.5), ('sparsity', 'x'), ('sparsity', float('nan')),
    ('norm_sentence_level', 2), ('mask_eos', 'yes'), ('sparsity_rank', 'norm'),
    ('sparsity_rank', None), ('sparsity_rank', ['raw']), ('spgd_directions', 'dirty'),
    ('spgd_step', -1), ('xi_var', -2), ('xi_var', 'large'), ('xi_var', None)])
def test_values_that_a_flag_would_not_take_are_refused(model, flag, value):
    run = model('run', method='spgd', **{flag: value})
    with pytest.raises(UserError, match=f'args.json is damaged: {flag} is ') as caught:
        resolve({'spgd': run})
    assert repr(value) in str(caught.value)


@pytest.mark.parametrize('flag, value, expected', [
    ('nn_k', '4', 4), ('sparsity', 1, 1.0), ('spgd_step', None, None), ('xi_var', 3, 3.0)])
def test_values_that_a_flag_would_take_are_taken_as_it_does(model, flag, value, expected):
    found = resolve({'spgd': model('run', method='spgd', **{flag: value})})['spgd']
    names = {flag: name for name, flag in settings.ATTACK.items()}
    taken = getattr(found, names[flag])
    assert taken == expected and type(taken) is type(expected)


def test_a_value_that_is_not_asked_for_may_be_anything(model):
    run = model('run', method='adv', xi_var='large', lower=7, hidden_dim='x')
    assert resolve({'iadv': run})['iadv'].epsilon == 15.0  # ε of another method


@pytest.mark.parametrize('name', settings.FLAGS)
def test_every_default_is_a_value_that_its_flag_takes(name):
    flag = settings.FLAGS[name]
    if 'default' in flag:
        assert settings.checked(name, flag['default'], 'run/best.model') == flag['default']
    elif 'action' not in flag:
        assert settings.checked(name, None, 'run/best.model') is None


def test_data_flags_are_those_of_the_run(model):
    run = model('run', lower=1, min_count=4, ignore_unk=0)
    flags = evaluate.parse(['--model', run, '--min_count', '2'])
    assert (flags.lower, flags.min_count, flags.ignore_unk, flags.use_unlabled_to_vocab) == (
        1, 2, 0, 1)
    flags = evaluate.parse(['--model', model('bare')])
    assert (flags.lower, flags.min_count, flags.ignore_unk) == (1, 1, 0)
    with pytest.raises(UserError, match='args.json is damaged: lower is 2'):
        evaluate.parse(['--model', model('damaged', lower=2)])


# Flags ----------------------------------------------------------------------------------------

def test_settings_as_flags():
    attack = AttackSettings(2.5, level='word', first_scale=3.0, mask_eos=True, k=4, k_offset=0,
                            limit_vocabulary=False, sparsity=0.5, iterations=2, step=None,
                            toward_only=True, rank='projected', directions='dropout', seed=7)
    shared = {'xi_var': 2.5, 'norm_sentence_level': 0, 'xi_var_first': 3.0, 'mask_eos': 1}
    neighbors = {'nn_k': 4, 'nn_k_offset': 0, 'use_limit_vocab': 0}
    assert settings.as_flags(attack, 'adv') == settings.as_flags(attack, 'vat') == shared
    assert settings.as_flags(attack, 'iadv') == {**shared, **neighbors}
    assert settings.as_flags(attack, 'adv_sparse') == {**shared, 'sparsity': 0.5}
    assert settings.as_flags(attack, 'random') == {**shared, 'seed': 7}
    assert settings.as_flags(attack, 'spgd') == {
        **shared, **neighbors, 'sparsity': 0.5, 'spgd_iters': 2, 'spgd_step': None,
        'spgd_toward_only': 1, 'sparsity_rank': 'projected', 'spgd_directions': 'dropout'}
    for value in settings.as_flags(attack, 'spgd').values():
        assert not isinstance(value, bool)
    sentence = dataclasses.replace(attack, level='sentence')
    assert settings.as_flags(sentence, 'adv')['norm_sentence_level'] == 1
    assert settings.as_flags(attack, 'hotflip') == {**neighbors, 'sparsity': 0.5}
    guided = dataclasses.replace(attack, class_lm='c.model', class_lm_weight=0.1)
    assert settings.as_flags(guided, 'adv') == {
        **shared, 'class_lm': 'c.model', 'class_lm_weight': 0.1}
    assert settings.as_flags(guided, 'iadv') == {**shared, **neighbors}


# A class-conditional language model -------------------------------------------------------------

def test_a_class_lm_is_given_for_all_methods_or_for_one_or_is_that_of_the_training(model):
    bare, run = model('bare'), model('run', method='spgd', xi_var=3.0, class_lm='trained.model',
                                     class_lm_weight=0.1)
    models = {'adv': bare, 'iadv': bare, 'spgd': run, 'hotflip': run}
    found = resolve(models)
    assert {method: attack.class_lm for method, attack in found.items()} == {
        'adv': '', 'iadv': '', 'spgd': 'trained.model', 'hotflip': 'trained.model'}
    assert found['spgd'].class_lm_weight == 0.1 and found['adv'].class_lm_weight == 1.0
    found = resolve(models, class_lms=dict.fromkeys(models, 'given.model'))
    assert {method: attack.class_lm for method, attack in found.items()} == {
        'adv': 'given.model', 'iadv': '', 'spgd': 'given.model', 'hotflip': 'given.model'}
    found = resolve(models, ['--class_lm_weight', '0'])
    assert not any(attack.class_lm for attack in found.values())


def test_a_method_that_needs_a_class_lm_has_one(model):
    bare, run = model('bare'), model('run', method='spgd', xi_var=3.0, class_lm='trained.model')
    assert resolve({'spgd_lm': run})['spgd_lm'] == AttackSettings(
        3.0, k=15, class_lm='trained.model', seed=3)
    for path, argv in ((bare, []), (run, ['--class_lm_weight', '0'])):
        with pytest.raises(UserError, match='spgd_lm needs .* --class_lm spgd_lm=PATH'):
            resolve({'spgd_lm': path}, argv)


def test_attacks_by_swaps_have_no_epsilon(model):
    run = model('run', method='spgd', xi_var=3.0, sparsity=0.9)
    found = resolve({'hotflip': run}, epsilons={'hotflip': 2.0})['hotflip']
    assert found.epsilon == 0 and found.budget == 0.1


def test_a_run_is_described_without_the_parts_that_it_does_not_use():
    """So runs of versions that did not know them can be resumed."""
    plain = settings.describe(train.parse(['--method', 'spgd']))
    assert not {'class_lm', 'class_lm_weight'} & set(plain)
    guided = settings.describe(train.parse(['--method', 'spgd', '--class_lm', 'c.model']))
    assert guided == {**plain, 'class_lm': 'c.model', 'class_lm_weight': 1.0}
    plain = settings.describe(pretrain.parse([]))
    assert not {'class_conditional', 'init'} & set(plain)
    conditional = settings.describe(pretrain.parse(['--class_conditional', '--init', 'lm.model']))
    assert conditional == {**plain, 'class_conditional': 1, 'init': 'lm.model'}


@pytest.mark.parametrize('method', methods.attackers())
def test_settings_as_flags_give_the_settings_again(method):
    attack = AttackSettings(2.5, level='word', first_scale=3.0, mask_eos=True, k=4, k_offset=0,
                            limit_vocabulary=False, sparsity=0.5, iterations=2, step=1.5,
                            toward_only=True, rank='projected', directions='dropout',
                            class_lm='c.model', class_lm_weight=0.1)
    flags = settings.as_flags(attack, method)
    assert ('xi_var' in flags) != methods.METHODS[method].swaps
    argv = [part for flag, value in flags.items() if flag != 'seed'
            for part in (f'--{flag}', str(value))]
    again = settings.attack_settings(train.parse(['--method', 'spgd', *argv]))
    named = {settings.ATTACK.get(name, name): name for name in (
        'epsilon', *methods.METHODS[method].settings)}
    for flag in flags:
        assert getattr(again, named[flag]) == getattr(attack, named[flag])


def test_settings_of_training_flags():
    assert settings.attack_settings(train.parse([])) == AttackSettings(1.0)
    found = settings.attack_settings(train.parse(['--preset', 'paper', '--method', 'spgd']), 5)
    assert found == AttackSettings(25.0, k=15, seed=5)


def test_flags_are_added_with_their_changes():
    parser = argparse.ArgumentParser()
    settings.add(parser, 'nn_k', 'sparsity')
    settings.add(parser, 'batchsize', names=('-b',), default=20)
    flags = parser.parse_args(['-b', '7', '--sparsity', '0.5'])
    assert (flags.nn_k, flags.sparsity, flags.batchsize) == (10, 0.5, 7)
    assert parser.parse_args([]).batchsize == 20
    assert settings.FLAGS['batchsize']['default'] == 32  # the declaration stays
    with pytest.raises(SystemExit):
        parser.parse_args(['--sparsity', '2'])


@pytest.mark.parametrize('argv, expected', [
    ([], (0, 0, 0, 0)), (['--use_spgd'], (1, 0, 0, 1)), (['--use_spgd', '1'], (1, 0, 0, 1)),
    (['--use_adv', '1', '--use_attn_d', '1'], (1, 1, 0, 0)), (['--use_semi_data', '1'],
                                                              (0, 0, 1, 0))])
def test_switches(argv, expected):
    assert settings.chosen_switches(analysis.make_parser().parse_args(argv)) == expected


def test_flags_of_attacks_mean_the_same_in_every_command():
    parsers = {module: {action.dest: action for action in module.make_parser()._actions}
               for module in (train, analysis, perplexity)}
    for flag in {*settings.SPGD, *settings.UPSTREAM_ATTACK} - {'xi_var'}:
        defaults = {parsers[module][flag].default for module in parsers}
        kinds = {parsers[module][flag].type for module in parsers}
        assert len(defaults) == len(kinds) == 1, flag
    assert 'nn_k' not in {action.dest for action in pretrain.make_parser()._actions}


def test_a_run_that_does_not_name_its_method_gives_no_epsilon(tmp_path):
    """Only the same method's ε is the trained one; without a name there is no telling."""
    (tmp_path / 'args.json').write_text(json.dumps({'xi_var': 7.0, 'nn_k': 3}))
    models = dict.fromkeys(('adv', 'iadv', 'adv_sparse'), str(tmp_path / 'best.model'))
    found = settings.resolve_attacks(analysis.make_parser, [], models, {}, 0)
    assert {method: attack.epsilon for method, attack in found.items()} == {
        'adv': 5.0, 'iadv': 15.0, 'adv_sparse': 5.0}
    assert found['iadv'].k == 3
