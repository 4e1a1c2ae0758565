import pytest

from experiments import plan as plans
from experiments import presets
from interpretable_adv import train
from interpretable_adv.errors import UserError
from interpretable_adv.methods import METHODS
from lm import pretrain


def write(tmp_path, text):
    path = tmp_path / 'mine.ini'
    path.write_text(text, encoding='utf-8')
    return str(path)


def test_presets_of_the_project():
    assert presets.names() == ['paper', 'paper_cpu', 'small', 'toy']
    for name in presets.names():
        beyond = {'spgd_lm'} if name in ('small', 'toy') else set()
        assert {*presets.load(name).methods} == {
            'baseline', 'pretrained', 'adv', 'iadv', 'spgd', *beyond}


def test_paper_cpu_is_paper_but_for_the_named_lines():
    paper, ours = presets.load('paper'), presets.load('paper_cpu')
    changed = {(section, flag): ours[section].get(flag) for section in presets.sections()
               for flag in {*paper[section], *ours[section]}
               if paper[section].get(flag) != ours[section].get(flag) and section != 'grid_search'}
    assert changed == {
        ('plan', 'seeds'): '1', ('plan', 'methods'): 'pretrained spgd adv iadv baseline',
        ('plan', 'results'): 'paper',
        ('lm', 'epoch'): '5', ('lm', 'min_improvement'): '0.01', ('lm', 'eval_streams'): '32',
        ('lm', 'snapshot_minutes'): '15',
        ('train', 'n_epoch'): '6', ('train', 'patience'): '2', ('train', 'snapshot_minutes'): '15',
        ('train', 'test_epochs'): 'best',
        ('baseline', 'n_epoch'): '12', ('baseline', 'patience'): '3',
        ('perplexity', 'n_samples'): '1000', ('sweep', 'n_samples'): '200'}
    assert ours.results == 'paper' and paper.results == 'paper_full' and paper['grid_search']


@pytest.mark.parametrize('method, expected', [
    ('baseline', {}), ('pretrained', {}),
    ('adv', {'xi_var': 5.0}), ('iadv', {'xi_var': 15.0, 'nn_k': 15}),
    ('spgd', {'xi_var': 25.0, 'nn_k': 15, 'sparsity': 0.75, 'spgd_iters': 1})])
def test_preset_paper_is_appendix_b(method, expected):
    preset = presets.load('paper')
    arguments = presets.arguments(preset.merged('train', method))
    settings = vars(train.parse([*arguments, '--method', METHODS[method].trained_by]))
    shared = {'emb_dim': 256, 'hidden_dim': 1024, 'hidden_cls_dim': 30, 'alpha': 0.001,
              'clip': 4.0, 'update_nearest_batch': 50, 'min_count': 1, 'lower': 0}
    for name, value in {**shared, **expected}.items():
        assert settings[name] == value, name
    assert len(preset.seeds) >= 5


def test_preset_papers_language_model_is_appendix_b():
    settings = vars(pretrain.parse(presets.arguments(presets.load('paper')['lm'])))
    for name, value in {'unit': 1024, 'n_units_word': 256, 'alpha': 0.001, 'alpha_decay': 0.9999,
                        'decay_if_fail': True, 'bproplen': 35, 'gradclip': 5.0,
                        'forget_bias': 1.0, 'adaptive_softmax': True, 'valid_split': 'dev'}.items():
        assert settings[name] == value, name


def test_sections_switches_comments_and_case(tmp_path):
    preset = presets.load(write(tmp_path, '# first\n[train]\nn_epoch = 3  # why\nToken =\n'
                                          '[adv]\nn_epoch = 5\n'))
    assert preset.name == 'mine'
    assert preset['train'] == {'n_epoch': '3', 'Token': ''}
    assert presets.arguments(preset['train']) == ['--n_epoch', '3', '--Token']
    assert preset.merged('train', 'adv', alpha='1')['n_epoch'] == '5'
    assert preset['lm'] == {}


def test_overrides_win(tmp_path):
    path = write(tmp_path, '[train]\nn_epoch = 3\n')
    preset = presets.load(path, ['train.n_epoch=7', 'spgd.xi_var=2', 'grid_search.adv.xi_var=1 2',
                                 'plan.seeds=4 5', 'sweep.sweep_epsilon='])
    assert preset['train'] == {'n_epoch': '7'}
    assert preset['spgd'] == {'xi_var': '2'}
    assert preset['grid_search'] == {'adv.xi_var': '1 2'}
    assert preset.seeds == [4, 5]


def test_changed_leaves_the_original_alone():
    preset = presets.load('toy')
    other = preset.changed('adv', xi_var='9')
    assert other['adv']['xi_var'] == '9' != preset['adv']['xi_var']
    assert other['train'] == preset['train']


@pytest.mark.parametrize('overrides', [
    ['n_epoch=3'], ['train.n_epoch'], ['nowhere.n_epoch=3'], ['train.=3'], ['plan.colour=red']])
def test_wrong_overrides_are_told(overrides):
    with pytest.raises(UserError):
        presets.load('toy', overrides)


@pytest.mark.parametrize('text', ['n_epoch = 3', '[train', '[nowhere]\na = 1', '[plan]\nx = 1',
                                  '[train]\na = 1\na = 2'])
def test_wrong_files_are_told(tmp_path, text):
    with pytest.raises(UserError, match='mine.ini'):
        presets.load(write(tmp_path, text))


@pytest.mark.parametrize('line, message', [
    ('methods = adv nonsense', "no method 'nonsense'"),
    ('methods = hotflip', "no method 'hotflip'"), ('dataset = ../../x', "no dataset '../../x'"),
    ('results = ../x', 'is no plain name')])
def test_a_plan_that_cannot_be_carried_out_is_told(tmp_path, line, message):
    with pytest.raises(UserError, match=message):
        presets.load(write(tmp_path, f'[plan]\n{line}'))


def test_unknown_preset_names_the_known_ones():
    with pytest.raises(UserError, match='paper, paper_cpu, small, toy'):
        presets.load('huge')


@pytest.mark.parametrize('text, seeds', [('1 2 5', [1, 2, 5]), ('3,4', [3, 4]), ('0', [0])])
def test_seeds(text, seeds):
    assert presets.parse_seeds(text) == seeds


@pytest.mark.parametrize('text', ['', 'one', '1 1', '-2', '1.5'])
def test_wrong_seeds(text):
    with pytest.raises(UserError):
        presets.parse_seeds(text)


def test_a_shared_section_gives_each_method_what_concerns_it():
    preset = presets.load('toy', ['train.sparsity=0.5', 'adv.spgd_iters=2', 'train.nn_k=3'])
    assert plans.classifier_settings(preset, 'spgd', 1).sparsity == 0.5
    for method in ('baseline', 'pretrained', 'adv', 'iadv'):
        arguments = plans.classifier_arguments(preset, method, 1)
        assert '--sparsity' not in arguments and '--spgd_iters' not in arguments
        assert '--nn_k' in arguments  # upstream's
        plans.classifier_settings(preset, method, 1)
