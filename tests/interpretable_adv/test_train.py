"""train.py: trajectories equal upstream's, flags are upstream's, resume is exact."""
import hashlib
import json
import math
import os
import signal
import subprocess
import sys

import h5py
import numpy as np
import pytest

from interpretable_adv import data, methods, nets, train
from interpretable_adv.data.__main__ import main as data_command
from interpretable_adv.errors import UserError
from interpretable_adv.nn import kernels
from interpretable_adv.runs import checkpoints, extensions, files
from interpretable_adv.settings import load_corpus
from lm.nets import RNNForLM

METHODS = ['baseline', 'adv', 'iadv', 'vat', 'ivat', 'spgd']
RECORDED = METHODS[:-1]


@pytest.fixture(scope='session')
def corpus(golden):
    return golden / 'synthetic' / 'mini_synthetic'


def tiny(corpus, out, method, *more):
    """Arguments of a run that takes about a second."""
    return ['--data_dir', str(corpus), '--out', str(out), '--method', method, '--lower', '0',
            '--ignore_unk', '1', '--emb_dim', '8', '--hidden_dim', '10', '--hidden_cls_dim', '5',
            '--batchsize', '16', '--batchsize_semi', '24', '--n_epoch', '2', '--nn_k', '4',
            '--xi_var', '5', '--log_steps', '1', '--progress', 'off', *map(str, more)]


def steps(out):
    with open(out / 'steps.jsonl', encoding='utf-8') as stream:
        return [json.loads(line) for line in stream]


def read(path):
    return json.loads(path.read_text(encoding='utf-8'))


# Trajectories -------------------------------------------------------------------------------

def check_trajectory(recorded, data_dir, out):
    train.main(['--data_dir', str(data_dir), '--out', str(out), '--log_steps', '1',
                '--progress', 'off', *recorded['argv']])
    rows = steps(out)
    names = ('loss_clean', 'loss_first', 'loss_adv'), ('loss_vat_first', 'loss_vat')
    losses, divergences = ([row[name] for row in rows for name in group if name in row]
                           for group in names)
    tolerance = 1e-6 if kernels.available else 1e-5  # NumPy's bits depend on the machine
    np.testing.assert_allclose(losses, recorded['losses'], atol=tolerance)
    np.testing.assert_allclose(divergences, recorded['kl'], atol=tolerance)
    for name, split in (('[dev]', 'dev'), ('[test]', 'test')):
        expected = [float(line.split(':')[1]) for line in recorded['log'] if name in line]
        actual = [row[f'{split}/main/accuracy'] for row in read(out / 'log')]
        np.testing.assert_allclose(actual, expected)
    means = [float(line.split(':')[1]) for line in recorded['log'] if 'sum_loss' in line]
    np.testing.assert_allclose([row['main/loss'] for row in read(out / 'log')], means,
                               atol=tolerance)


@pytest.mark.parametrize('method', RECORDED)
def test_every_loss_equals_upstreams(golden, corpus, tmp_path, method):
    check_trajectory(read(golden / 'synthetic' / f'traj_{method}.json'), corpus, tmp_path)


@pytest.mark.parametrize('method', RECORDED)
def test_every_loss_equals_upstreams_on_real_reviews(shared, tmp_path, method):
    recorded = read(shared / 'golden' / f'traj_{method}.json')
    check_trajectory(recorded, shared / 'golden' / 'mini_imdb', tmp_path)


# Flags --------------------------------------------------------------------------------------

def test_upstreams_flags_keep_name_type_and_default(shared):
    ours = {flag: action for action in train.make_parser()._actions
            for flag in action.option_strings}
    for flag in read(shared / 'golden' / 'upstream_cli.json')['train.py']:
        action = ours[flag['flags'][0]]
        assert set(flag['flags']) <= set(action.option_strings)
        assert action.default == flag['default'], flag
        if flag.get('type', 'str') != 'str':
            assert action.type.__name__ == flag['type'], flag
        if 'choices' in flag:
            assert list(action.choices) == flag['choices']


def test_upstreams_abbreviations_still_work():
    settings = train.parse(['--use_unlabled=0', '--s', 'name', '--o', '1', '--nn_k=3', '--up', '2',
                            '--batchsize_s', '7', '--rand', '5', '--da', 'imdb'])
    assert settings.use_unlabled_to_vocab == 0
    assert settings.save_name == 'name' and settings.online_nn == 1
    assert settings.update_nearest_epoch == 2
    assert settings.batchsize_semi == 7 and settings.random_seed == 5


@pytest.mark.parametrize('method', METHODS)
def test_method_is_a_front_for_the_switches(method):
    named = train.parse(['--method', method])
    switches = [f'--{name}={value}'
                for name, value in zip(methods.SWITCHES, methods.METHODS[method].switches)]
    assert train.parse(switches).method == named.method == method


def test_use_spgd_alone_is_enough():
    assert train.parse(['--use_spgd', '1']).method == train.parse(['--use_spgd']).method == 'spgd'


def test_preset_paper_is_appendix_b_and_can_be_overridden():
    for method, epsilon in (('adv', 5), ('iadv', 15), ('spgd', 25)):
        settings = train.parse(['--preset', 'paper', '--method', method])
        assert settings.xi_var == epsilon
        assert (settings.emb_dim, settings.hidden_dim, settings.hidden_cls_dim) == (256, 1024, 30)
        assert (settings.clip, settings.nn_k, settings.sparsity) == (4, 15, 0.75)
        assert settings.update_nearest_batch == 50
    settings = train.parse(['--preset', 'paper', '--use_adv', '1', '--clip', '5'])
    assert settings.clip == 5 and settings.xi_var == 5


@pytest.mark.parametrize('argv, part', [
    (['--method', 'spgd', '--use_attn_d', '1'], 'contradict'),
    (['--use_spgd', '1', '--use_semi_data', '1'], 'exclude'),
    (['--sparsity', '1.5'], 'between 0 and 1'),
    (['--sparsity', 'much'], 'sparsity'),
    (['--batchsize', '0'], 'less than 1'),
    (['--use_bilstm', '1'], '--use_bilstm'),
    (['--dataset', 'fce'], 'own'),
    (['--method', 'fgsm'], 'fgsm'),
    (['--no_such_flag'], 'no_such_flag'),
    (['--dropout', '1'], '--dropout'),
])
def test_impossible_flags_are_one_line(argv, part):
    with pytest.raises(UserError, match=part):
        train.parse(argv)


# Values that would make a run fail, hang or learn nothing, each refused before anything is read.
REFUSED = {
    '--random_seed': ['4294967296', '-1'], '--emb_dim': ['1000000000', '0'],
    '--hidden_dim': ['1000000000'], '--hidden_cls_dim': ['1000000000'],
    '--n_layers': ['4294967296', '65'], '--batchsize': ['10000000000'],
    '--batchsize_semi': ['10000000000'], '--n_epoch': ['4294967296'],
    '--alpha': ['inf', 'nan', '1e308'],
    '--alpha_decay': ['1e308', 'inf', '1.5'], '--clip': ['0', 'nan', '-1'],
    '--nl_factor': ['nan', 'inf', '-inf', '1e308'], '--xi_var': ['1e20', '1e308', 'inf', 'nan'],
    '--xi_var_first': ['1e308', 'inf'], '--nn_k': ['4294967296'], '--nn_k_offset': ['4294967296'],
    '--spgd_iters': ['1000000000000', '0'], '--spgd_step': ['inf', '1e20'], '--sparsity': ['nan'],
    '--min_count': ['99999999999999999999'], '--snapshot_steps': ['99999999999999999999'],
    '--snapshot_minutes': ['inf', 'nan'], '--log_steps': ['-1'], '--patience': ['-1'],
    '--update_nearest_batch': ['99999999999999999999'], '--gpu': ['99999999999'],
    '--update_nearest_epoch': ['-1'], '--dropout': ['1', 'nan'],
}


@pytest.mark.parametrize('flag, value', [(flag, value) for flag, values in REFUSED.items()
                                         for value in values])
def test_values_without_sense_are_noticed_up_front(flag, value):
    with pytest.raises(UserError, match=flag):
        train.parse(['--method', 'spgd', f'{flag}={value}'])


def test_a_clip_that_never_clips_is_allowed():
    assert train.parse(['--clip', 'inf']).clip == math.inf


@pytest.mark.parametrize('argv, flag', [
    (['--method', 'adv', '--sparsity', '0.5'], '--sparsity'),
    (['--method', 'adv', '--sparsity', '0.75'], '--sparsity'),  # typed, although it is the default
    (['--method', 'vat', '--spgd_iters', '2'], '--spgd_iters'),
    (['--method', 'iadv', '--sparsity_rank', 'raw'], '--sparsity_rank'),
    (['--method', 'adv', '--update_nearest_batch', '5'], '--update_nearest_batch'),
    (['--method', 'baseline', '--mask_eos'], '--mask_eos')])
def test_what_has_no_effect_on_the_method_is_refused(argv, flag):
    with pytest.raises(UserError, match=f'{flag} has no effect on --method'):
        train.parse(argv)


@pytest.mark.parametrize('argv', [
    ['--preset', 'paper', '--method', 'adv'],
    ['--method', 'adv', '--nn_k', '3', '--online_nn', '1'],
    ['--method', 'baseline', '--xi_var', '3'], ['--method', 'iadv', '--update_nearest_batch', '5'],
    ['--method', 'adv', '--mask_eos'], ['--method', 'spgd', '--sparsity', '0.5'],
    ['--use_adv', '1', '--sparsity', '0.5']])
def test_presets_and_upstreams_flags_never_are(argv):
    train.parse(argv)


# Runs ---------------------------------------------------------------------------------------

def run(argv, **options):
    return subprocess.run([sys.executable, '-m', 'interpretable_adv.train', *argv],
                          capture_output=True, text=True, timeout=120, **options)


@pytest.mark.parametrize('method', METHODS)
def test_a_run_writes_what_it_promises(corpus, tmp_path, capsys, method):
    train.main(tiny(corpus, tmp_path, method))
    assert {'args.json', 'vocab.txt', 'log', 'steps.jsonl', 'best.model', 'snapshot.npz',
            'result.json'} == set(os.listdir(tmp_path))
    result = read(tmp_path / 'result.json')
    assert result['method'] == method and result['seed'] == 1234
    best = max(read(tmp_path / 'log'), key=lambda row: row['dev/main/accuracy'])
    assert result['dev_accuracy'] == best['dev/main/accuracy']
    expected = {
        'baseline': set(), 'adv': {'loss_first', 'loss_adv'}, 'iadv': {'loss_first', 'loss_adv'},
        'vat': {'loss_vat_first', 'loss_vat'}, 'ivat': {'loss_vat_first', 'loss_vat'},
        'spgd': {'loss_first', 'loss_adv', 'words_kept', 'words_away', 'perturbation_norm'}}
    for number, row in enumerate(steps(tmp_path), 1):
        assert row['step'] == number
        assert set(row) == {'step', 'loss', 'loss_clean'} | expected[method]
        assert all(math.isfinite(value) for value in row.values())
    output = capsys.readouterr().out
    assert 'words/s' in output and 'best epoch' in output and 'best.model' in output


def test_spgd_keeps_a_quarter_of_the_words_and_raises_the_loss(corpus, tmp_path):
    train.main(tiny(corpus, tmp_path, 'spgd', '--dropout', 0, '--n_epoch', 3))
    rows = steps(tmp_path)
    assert all(0.15 < row['words_kept'] <= 0.25 for row in rows)
    assert all(row['loss_adv'] > row['loss_first'] for row in rows)


@pytest.mark.parametrize('flags', [
    ['--norm_sentence_level', 0], ['--spgd_toward_only'], ['--spgd_directions', 'dropout'],
    ['--sparsity_rank', 'projected'], ['--mask_eos'], ['--spgd_iters', 3, '--spgd_step', 2],
    ['--online_nn', 1], ['--use_limit_vocab', 0], ['--sparsity', 0], ['--update_nearest_batch', 3],
    ['--freeze_word_emb', 1], ['--nn_k_offset', 0], ['--use_exp_decay', 0, '--alpha_decay', 0.9]])
def test_every_flag_changes_the_run(corpus, tmp_path, flags):
    train.main(tiny(corpus, tmp_path / 'plain', 'spgd', '--n_epoch', 3))
    train.main(tiny(corpus, tmp_path / 'other', 'spgd', '--n_epoch', 3, *flags))
    assert steps(tmp_path / 'plain') != steps(tmp_path / 'other')


def test_adversarial_and_virtual_training_together(corpus, tmp_path):
    train.main([flag for flag in tiny(corpus, tmp_path, 'adv') if flag not in ('--method', 'adv')]
               + ['--use_adv', '1', '--use_semi_data', '1'])
    assert {'loss_adv', 'loss_vat'} <= set(steps(tmp_path)[0])
    assert read(tmp_path / 'result.json')['method'] == 'adv+vat'


def test_one_seed_gives_one_run_bit_for_bit(corpus, tmp_path):
    for name in 'ab':
        train.main(tiny(corpus, tmp_path / name, 'spgd'))
    assert_same_run(tmp_path / 'a', tmp_path / 'b')


def test_a_loss_that_is_not_finite_stops_the_run(corpus, tmp_path):
    result = run(tiny(corpus, tmp_path, 'baseline', '--alpha', 1e30, '--clip', 1e30))
    assert result.returncode == 2
    assert len(result.stderr.strip().splitlines()) == 1 and 'step' in result.stderr


def test_a_second_run_in_the_same_folder_is_refused(corpus, tmp_path):
    train.main(tiny(corpus, tmp_path, 'baseline'))
    with pytest.raises(UserError, match='--resume'):
        train.main(tiny(corpus, tmp_path, 'baseline'))


def test_a_model_that_cannot_fit_is_refused(corpus, tmp_path):
    with pytest.raises(UserError, match='GB of memory'):
        train.main(tiny(corpus, tmp_path / 'out', 'adv', '--emb_dim', 65536, '--hidden_dim', 65536,
                        '--n_layers', 64))
    assert not (tmp_path / 'out').exists()


def test_a_folder_that_another_training_writes_to_is_refused(corpus, tmp_path):
    with files.locked(tmp_path, '--out'):
        for more in ([], ['--resume']):
            with pytest.raises(UserError, match=f'{tmp_path} is in use by process {os.getpid()}'):
                train.main(tiny(corpus, tmp_path, 'baseline', *more))
    assert os.listdir(tmp_path) == []


def test_a_log_of_steps_without_room_is_one_line(corpus, tmp_path, monkeypatch):
    train.main(tiny(corpus, tmp_path, 'baseline'))
    opened = open

    def full(path, mode='r', **options):
        return opened('/dev/full' if mode == 'a' else path, mode, **options)
    monkeypatch.setattr(extensions, 'open', full, raising=False)
    with pytest.raises(UserError, match='cannot write /dev/full: No space left.*--resume'):
        train.main(tiny(corpus, tmp_path, 'baseline', '--n_epoch', 3, '--resume'))
    monkeypatch.undo()
    train.main(tiny(corpus, tmp_path, 'baseline', '--n_epoch', 3, '--resume'))
    assert [row['step'] for row in steps(tmp_path)] == list(range(1, 16))


def test_too_many_neighbours_are_refused(corpus, tmp_path):
    with pytest.raises(UserError, match='--nn_k'):
        train.main(tiny(corpus, tmp_path, 'iadv', '--nn_k', 5000))


def test_a_missing_corpus_is_refused(tmp_path):
    with pytest.raises(UserError, match='nowhere'):
        train.main(tiny(tmp_path / 'nowhere', tmp_path / 'out', 'adv'))
    assert not (tmp_path / 'out').exists()


def test_a_corpus_without_test_reviews_can_be_trained_on(tmp_path):
    rows = [f'{word} film number {i},{label}' for i in range(30)
            for word, label in (('good', 'yes'), ('bad', 'no'), ('odd', 'maybe'))]
    (tmp_path / 'train.csv').write_text('text,label\n' + '\n'.join(rows) + '\n')
    data_command(['prepare', '--dataset', 'own', '--train', str(tmp_path / 'train.csv'),
                  '--data_dir', str(tmp_path / 'corpus')])
    train.main(tiny(tmp_path / 'corpus', tmp_path / 'out', 'spgd', '--eval', 1))
    result = read(tmp_path / 'out' / 'result.json')
    assert result['test_accuracy'] is None and result['dev_accuracy'] is not None


# Resume -------------------------------------------------------------------------------------

def assert_same_run(first, second):
    """Everything that two runs wrote is the same, but for the times."""
    arrays = [dict(np.load(out / 'snapshot.npz')) for out in (first, second)]
    assert set(arrays[0]) == set(arrays[1])
    for name in arrays[0]:
        if 'elapsed_time' in name or name == 'settings':
            continue
        a, b = (array[name] for array in arrays)
        if name.endswith('_log'):  # LogReport's epochs, as JSON
            a, b = without_times(json.loads(str(a))), without_times(json.loads(str(b)))
            assert a == b
        else:
            np.testing.assert_array_equal(a, b, err_msg=name)
    assert (first / 'steps.jsonl').read_text() == (second / 'steps.jsonl').read_text()
    assert without_times(read(first / 'log')) == without_times(read(second / 'log'))
    with h5py.File(first / 'best.model') as a, h5py.File(second / 'best.model') as b:
        np.testing.assert_array_equal(a['word_embed/W'][()], b['word_embed/W'][()])
    results = [read(out / 'result.json') for out in (first, second)]
    assert results[0]['best_epoch'] == results[1]['best_epoch']
    assert results[0]['test_accuracy'] == results[1]['test_accuracy']


def without_times(log):
    return [{name: value for name, value in row.items() if name != 'elapsed_time'} for row in log]


# Trains, and kills itself with SIGKILL: at a step, or in the middle of writing a snapshot.
KILLED = '''
import os, signal, sys
import numpy
from interpretable_adv import train
from interpretable_adv.runs import extensions

place, count = sys.argv[1], int(sys.argv[2])


def die():
    os.kill(os.getpid(), signal.SIGKILL)


if place == 'step':
    log_step = extensions.StepLog.__call__

    def log_and_die(self, trainer):
        log_step(self, trainer)
        if trainer.updater.iteration == count:
            die()

    extensions.StepLog.__call__ = log_and_die
else:
    write, written = numpy.savez, []

    def write_half(stream, **arrays):
        written.append(1)
        if len(written) == count:
            half = dict(list(arrays.items())[:len(arrays) // 2])
            write(stream, **half)
            stream.flush()
            die()
        write(stream, **arrays)

    numpy.savez = write_half
train.main(sys.argv[3:])
'''


def run_killed(place, count, argv):
    result = subprocess.run([sys.executable, '-c', KILLED, place, str(count), *argv],
                            capture_output=True, text=True, timeout=120)
    assert result.returncode == -signal.SIGKILL, result.stderr


@pytest.mark.parametrize('method, place, count, more', [
    *((method, 'step', 8, ['--snapshot_steps', 3]) for method in METHODS),
    ('iadv', 'step', 7, []),  # between the snapshots of two epochs
    ('adv', 'step', 5, []),  # an epoch's end, after its log and before its snapshot
    ('adv', 'step', 2, []),  # before the first snapshot
    ('spgd', 'snapshot', 2, ['--snapshot_steps', 4, '--update_nearest_batch', 3]),
    ('vat', 'step', 8, ['--n_layers', 2, '--snapshot_steps', 1, '--use_exp_decay', 0,
                        '--alpha_decay', 0.9]),
])
def test_a_killed_run_resumes_exactly(corpus, tmp_path, method, place, count, more):
    whole, killed = tmp_path / 'whole', tmp_path / 'killed'
    train.main(tiny(corpus, whole, method, *more))
    run_killed(place, count, tiny(corpus, killed, method, *more))
    assert not (killed / 'result.json').exists()
    train.main(tiny(corpus, killed, method, *more, '--resume'))
    assert_same_run(whole, killed)


@pytest.mark.parametrize('change, part', [
    (['--hidden_dim', '12'], 'hidden_dim was 10 and is 12'),
    (['--method', 'adv'], 'method'), (['--min_count', '2'], 'min_count'),
    (['--random_seed', '3'], 'random_seed')])
def test_resuming_another_run_is_refused(corpus, tmp_path, change, part):
    train.main(tiny(corpus, tmp_path, 'baseline'))
    before = (tmp_path / 'snapshot.npz').read_bytes()
    with pytest.raises(UserError, match=part):
        train.main(tiny(corpus, tmp_path, 'baseline', '--resume', *change))
    assert (tmp_path / 'snapshot.npz').read_bytes() == before


def test_a_finished_run_can_go_on_for_more_epochs(corpus, tmp_path):
    train.main(tiny(corpus, tmp_path / 'two', 'adv'))
    train.main(tiny(corpus, tmp_path / 'two', 'adv', '--resume', '--n_epoch', 3))
    train.main(tiny(corpus, tmp_path / 'three', 'adv', '--n_epoch', 3))
    assert_same_run(tmp_path / 'two', tmp_path / 'three')


def test_a_truncated_snapshot_is_one_line(corpus, tmp_path):
    train.main(tiny(corpus, tmp_path, 'baseline'))
    snapshot = tmp_path / 'snapshot.npz'
    snapshot.write_bytes(snapshot.read_bytes()[:-1000])
    with pytest.raises(UserError, match='damaged or truncated'):
        train.main(tiny(corpus, tmp_path, 'baseline', '--resume'))


# Starting from a language model ---------------------------------------------------------------

@pytest.fixture(scope='module')
def language_model(golden, tmp_path_factory):
    """An untrained language model of the synthetic corpus, saved with its vocabulary."""
    corpus = data.load(golden / 'synthetic' / 'mini_synthetic')
    folder = tmp_path_factory.mktemp('lm')
    np.random.seed(5)
    model = RNNForLM(corpus.n_vocab, n_units=10, n_units_word=8)
    checkpoints.save_lm(folder / 'best.model', model)
    checkpoints.save_vocabulary(folder / 'vocab.txt', corpus.words)
    return folder / 'best.model', model


@pytest.mark.parametrize('word_only', [0, 1])
def test_the_classifier_starts_from_the_language_model(
        corpus, tmp_path, language_model, word_only):
    path, lm = language_model
    settings = train.parse(tiny(corpus, tmp_path, 'baseline', '--pretrained_model', path,
                                '--word_only', word_only))
    np.random.seed(1)
    model = train.build_model(settings, load_corpus(settings))
    np.testing.assert_array_equal(model.word_embed.W.array, lm.embed.W.array)
    for ours, theirs in zip(model.uni_lstm, lm.rnn):
        same = [np.array_equal(a.array, b.array) for (_, a), (_, b) in zip(
            sorted(ours.namedparams()), sorted(theirs.namedparams())) if a.ndim == 2]
        assert not any(same) if word_only else all(same)


def test_the_language_models_initial_weights_are_drawn_as_upstream_does(
        corpus, tmp_path, language_model):
    """Upstream builds the language model before it reads it; the stream continues from there."""
    settings = train.parse(tiny(corpus, tmp_path, 'baseline', '--pretrained_model',
                                language_model[0]))
    words = load_corpus(settings)
    np.random.seed(1)
    train.build_model(settings, words)
    after = np.random.rand()
    np.random.seed(1)
    settings.pretrained_model = ''
    train.build_model(settings, words)
    RNNForLM(words.n_vocab, n_units=10, n_units_word=8)
    assert np.random.rand() == after


@pytest.mark.parametrize('change, part', [
    (['--emb_dim', 9], '--emb_dim 8'), (['--hidden_dim', 9], '--hidden_dim 10'),
    (['--n_layers', 2], '--n_layers 1'), (['--min_count', 2], 'words'),
    (['--pretrained_model', 'nothing'], 'no such file')])
def test_a_language_model_that_does_not_fit_is_one_line(
        corpus, tmp_path, language_model, change, part):
    with pytest.raises(UserError, match=part):
        train.main(tiny(corpus, tmp_path, 'baseline', '--pretrained_model', language_model[0],
                        *change))


def test_a_run_can_start_from_a_classifier(corpus, tmp_path):
    train.main(tiny(corpus, tmp_path / 'first', 'baseline'))
    settings = train.parse(tiny(corpus, tmp_path, 'adv', '--load_trained_lstm',
                                tmp_path / 'first' / 'best.model'))
    model = train.build_model(settings, load_corpus(settings))
    with h5py.File(tmp_path / 'first' / 'best.model') as file:
        np.testing.assert_array_equal(model.word_embed.W.array, file['word_embed/W'][()])


def test_eval_prints_the_accuracies_before_training(corpus, tmp_path, capsys):
    train.main(tiny(corpus, tmp_path, 'baseline', '--eval', 1))
    assert 'before training: dev' in capsys.readouterr().out


def test_patience_ends_a_run_that_no_longer_improves(corpus, tmp_path):
    """With a step size of 0 no epoch is better than the first."""
    flags = '--alpha', '0', '--n_epoch', '9', '--patience', '2'
    train.main(tiny(corpus, tmp_path / 'out', 'baseline', *flags))
    result = read(tmp_path / 'out' / 'result.json')
    assert (result['epochs_trained'], result['best_epoch'], result['n_epoch']) == (3, 1, 9)
    train.main(tiny(corpus, tmp_path / 'out', 'baseline', *flags, '--resume'))
    assert read(tmp_path / 'out' / 'result.json')['epochs_trained'] == 3
    train.main(tiny(corpus, tmp_path / 'out', 'baseline', *flags[:-1], '3', '--resume'))
    assert read(tmp_path / 'out' / 'result.json')['epochs_trained'] == 4


def test_the_test_set_may_be_read_for_the_best_epoch_only(corpus, tmp_path):
    flags = '--n_epoch', '5', '--alpha', '0.02'
    train.main(tiny(corpus, tmp_path / 'all', 'baseline', *flags))
    train.main(tiny(corpus, tmp_path / 'best', 'baseline', *flags, '--test_epochs', 'best'))
    assert all('test/main/accuracy' in row for row in read(tmp_path / 'all' / 'log'))
    assert not any('test/main/accuracy' in row for row in read(tmp_path / 'best' / 'log'))
    results = [read(tmp_path / name / 'result.json') for name in ('all', 'best')]
    loaded = load_corpus(train.parse(tiny(corpus, tmp_path / 'best', 'baseline')))
    best = nets.load_classifier(str(tmp_path / 'best' / 'best.model'), loaded.words)
    right = nets.predict(best, loaded.test.sequences).argmax(axis=1) == loaded.test.labels
    assert results[1]['test_accuracy'] == 100 * right.sum() / len(right)
    for name in ('digest', 'best_epoch', 'dev_accuracy', 'test_accuracy'):
        assert results[0][name] == results[1][name]


def test_a_result_tells_its_digest_and_its_arithmetic(corpus, tmp_path):
    train.main(tiny(corpus, tmp_path / 'out', 'spgd'))
    result = read(tmp_path / 'out' / 'result.json')
    with h5py.File(tmp_path / 'out' / 'best.model') as file:
        arrays = {}
        file.visititems(lambda name, item: arrays.update({name: item[()]})
                        if isinstance(item, h5py.Dataset) else None)
    expected = hashlib.sha256()
    for name in sorted(arrays):  # as docs say, written out once more
        expected.update(f'{name} {arrays[name].dtype.str} {arrays[name].shape}\n'.encode())
        expected.update(arrays[name].astype('<f4').tobytes('C'))
    assert result['digest'] == expected.hexdigest()
    assert result['arithmetic'] == ('kernels' if kernels.available else 'numpy')


def test_resuming_with_another_arithmetic_is_told(corpus, tmp_path, capsys):
    train.main(tiny(corpus, tmp_path / 'out', 'baseline'))
    assert capsys.readouterr().err == ''
    path = tmp_path / 'out' / 'snapshot.npz'
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    other = {'kernels': 'numpy', 'numpy': 'kernels'}[str(arrays['arithmetic'])]
    np.savez(path, **{**arrays, 'arithmetic': np.array(other)})
    train.main(tiny(corpus, tmp_path / 'out', 'baseline', '--n_epoch', '3', '--resume'))
    error = capsys.readouterr().err
    assert error.count('\n') == 1 and f'written with the arithmetic of {other}' in error
    del arrays['arithmetic']  # a snapshot of version 1.0
    np.savez(path, **arrays)
    train.main(tiny(corpus, tmp_path / 'out', 'baseline', '--n_epoch', '4', '--resume'))
    assert capsys.readouterr().err == ''
