import json
import os
import signal
import time

import numpy as np
import pytest

from interpretable_adv.errors import UserError
from interpretable_adv.runs import checkpoints
from lm import pretrain
from lm.nets import RNNForLM, load_lm

SIZES = ['--batchsize', '4', '--bproplen', '10', '--unit', '24', '--n-units-word', '16']


def _run(data_dir, out, *arguments):
    pretrain.main(['--data_dir', str(data_dir), '--out', str(out), *SIZES, *arguments])
    return json.loads((out / 'result.json').read_text())


def _losses(out):
    return [json.loads(line)['loss'] for line in (out / 'steps.jsonl').read_text().splitlines()]


def _models_equal(one, other):
    one, other = checkpoints.read_arrays(one), checkpoints.read_arrays(other)
    return set(one) == set(other) and all((one[name] == other[name]).all() for name in one)


# Upstream -------------------------------------------------------------------------------------

def _check_trajectory(recording, data_dir, out, capsys):
    recorded = json.loads(recording.read_text())
    arguments = [str(out) if word == 'OUT' else word for word in recorded['argv']]
    pretrain.main(['--data_dir', str(data_dir), '--log-steps', *arguments])
    np.testing.assert_allclose(_losses(out), recorded['train_losses'], rtol=2e-6)
    printed = capsys.readouterr().out.splitlines()
    lines = [line for line in printed if not line.startswith(('valid', 'test'))]
    for line in recorded['stdout'][:-2]:
        assert line in lines
    perplexity = float(recorded['stdout'][-1].split()[-1])
    result = json.loads((out / 'result.json').read_text())
    assert result['test_perplexity'] == pytest.approx(perplexity, rel=1e-6)
    assert result['valid_perplexity'] == pytest.approx(perplexity, rel=1e-6)
    best = checkpoints.read_arrays(str(out / 'best.model'))
    for name, norm in recorded['param_norms'].items():
        array = best[name.lstrip('/')]
        assert np.linalg.norm(array) == pytest.approx(norm, rel=1e-5), name
        assert array.sum() == pytest.approx(recorded['param_sums'][name], rel=1e-3, abs=1e-3), name


def test_every_window_matches_upstream(golden, synthetic, tmp_path, capsys):
    _check_trajectory(golden / 'synthetic' / 'traj_lm.json', synthetic, tmp_path, capsys)


def test_every_window_matches_upstream_on_real_reviews(shared, tmp_path, capsys):
    folder = shared / 'golden'
    _check_trajectory(folder / 'traj_lm.json', folder / 'mini_imdb', tmp_path, capsys)


def test_upstreams_checkpoint_is_read_and_written_back_identically(shared, tmp_path):
    path = shared / 'golden' / 'upstream_lm.model'
    model = load_lm(str(path))
    assert (model.n_vocab, model.rnn.out_size, model.embed.W.shape[1]) == (690, 24, 16)
    copy = str(tmp_path / 'copy.model')
    checkpoints.save_lm(copy, model)
    assert _models_equal(str(path), copy)


@pytest.mark.parametrize('kwargs', [
    {}, {'n_layers': 2}, {'adaptive_softmax': True}, {'adaptive_softmax': True, 'cutoff': [3, 9]},
    {'share_embedding': True, 'n_units_word': 12}])
def test_a_checkpoint_tells_its_sizes(kwargs, tmp_path):
    settings = {'n_vocab': 30, 'n_units': 12, 'n_units_word': 7, **kwargs}
    model = RNNForLM(**settings)
    paths = [str(tmp_path / name) for name in ('one', 'two')]
    checkpoints.save_lm(paths[0], model)
    checkpoints.save_lm(paths[1], load_lm(paths[0]))
    assert _models_equal(*paths)
    vectors = np.ones((4, settings['n_units_word']), np.float32)
    np.testing.assert_array_equal(load_lm(paths[0]).score_embeddings(vectors, np.arange(4)),
                                  model.score_embeddings(vectors, np.arange(4)))


def test_a_classifier_is_no_language_model(tmp_path):
    path = str(tmp_path / 'other.npz')
    np.savez(path, **{'word_embed/W': np.zeros((3, 2))})
    os.rename(path, tmp_path / 'other.model')
    with pytest.raises(UserError, match='is not a language model'):
        load_lm(str(tmp_path / 'other.model'))


def _upstream_flags(shared):
    return json.loads((shared / 'golden' / 'upstream_cli.json').read_text())['pretrain.py']


def test_upstreams_flags_keep_their_defaults_and_abbreviations(shared):
    parser = pretrain.make_parser()
    defaults = vars(parser.parse_args([]))
    flags = _upstream_flags(shared)
    names = [name for flag in flags for name in flag['flags']]
    for flag in flags:
        key = flag['flags'][0].strip('-').replace('-', '_')
        assert defaults[key] == flag.get('default', False if 'action' in flag else None), key
        for name in flag['flags']:
            number = '0.25' if flag.get('type') == 'float' else '7'
            value = [] if 'action' in flag else [flag.get('choices', [number])[-1]]
            expected = True if 'action' in flag else value[0]
            beginnings = [name] if name[1] != '-' else [
                name[:n] for n in range(3, len(name) + 1)
                if sum(other.startswith(name[:n]) for other in names) == 1 or name[:n] == name]
            for beginning in beginnings:
                got = vars(parser.parse_args([beginning, *value]))[key]
                assert str(got) == str(type(got)(expected)), beginning


# Presets and flags ----------------------------------------------------------------------------

def test_preset_paper_can_be_overridden():
    settings = pretrain.parse(['--preset', 'paper'])
    assert (settings.bproplen, settings.gradclip, settings.forget_bias) == (35, 5, 1)
    assert settings.decay_if_fail and settings.adaptive_softmax and settings.valid_split == 'dev'
    settings = pretrain.parse(['--preset', 'paper', '--no-adaptive-softmax', '--bproplen', '20',
                               '--no-decay-if-fail', '--valid-split', 'test'])
    assert not settings.decay_if_fail and not settings.adaptive_softmax
    assert (settings.bproplen, settings.valid_split, settings.forget_bias) == (20, 'test', 1)


@pytest.mark.parametrize('flag, value', [
    ('--random-seed', '4294967296'), ('--unit', '1000000000'), ('--n-units-word', '1000000000'),
    ('--layer', '4294967296'), ('--batchsize', '10000000000'), ('--bproplen', '10000000000'),
    ('--forget-bias', 'inf'), ('--forget-bias', 'nan'), ('--alpha', 'inf'), ('--alpha', '1e308'),
    ('--alpha_decay', '1e308'), ('--gradclip', '0'), ('--gradclip', 'nan'), ('--epoch', '0'),
    ('--min_improvement', 'nan'), ('--snapshot_minutes', 'inf'), ('--eval_streams', '4294967296'),
    ('--validation-interval', '-1'), ('--log-interval', '0'), ('--patience', '4294967296')])
def test_values_without_sense_are_noticed_up_front(flag, value):
    with pytest.raises(UserError, match=flag):
        pretrain.parse([flag, value])


def test_a_model_that_cannot_fit_is_refused(synthetic, tmp_path):
    with pytest.raises(UserError, match='GB of memory.*--bproplen'):
        pretrain.main(['--data_dir', str(synthetic), '--out', str(tmp_path / 'out'), '--batchsize',
                       '100000', '--bproplen', '100000'])
    assert not (tmp_path / 'out').exists()


@pytest.mark.parametrize('arguments,message', [
    (['--batchsize', '0'], 'less than 1'),
    (['--dropout', '1'], 'would drop everything'),
    (['--dropout', '1.5'], 'not between 0 and 1'),
    (['--gradclip', '0'], 'positive norm'),
    (['--cutoffs', '5'], 'need --adaptive-softmax'),
    (['--adaptive-softmax', '--cutoffs', '9999'], 'give increasing numbers from 1 to 185'),
    (['--adaptive-softmax', '--cutoffs', 'x'], 'invalid list of numbers value'),
    (['--dataset', 'elec'], '--data_dir'),
    (['--vocab', 'v', '--use-full-vocab'], 'leave one out'),
    (['--decay-every', '--decay-if-fail'], 'leave one out'),
    (['--share-embedding'], 'as large as the LSTM'),
    (['--resume', 'nowhere.npz'], 'no such file'),
    (['--min_count', '100000'], 'smaller min_count'),
    (['--gpu', '77'], '77'),
])
def test_what_cannot_be_is_refused_in_one_line(arguments, message, synthetic, tmp_path):
    with pytest.raises(UserError, match=message):
        _run(synthetic, tmp_path, *arguments)
    assert not (tmp_path / 'result.json').exists()


def test_preset_paper_on_a_small_corpus(synthetic, tmp_path, capsys):
    result = _run(synthetic, tmp_path, '--preset', 'paper', '--epoch', '2', '--eval-streams', '3')
    assert result['valid_split'] == 'dev' and result['eval_streams'] == 3
    assert result['valid_perplexity'] != result['test_perplexity']
    model = load_lm(str(tmp_path / 'best.model'))
    assert model.output.bounds == (0, 93, 186)  # a small vocabulary: a tail from its middle
    assert abs(model.rnn[0].b1.array.mean() - 1) < 0.2  # started at 1
    assert '*lr' not in capsys.readouterr().out  # perplexity fell in both epochs


def test_alpha_decays_only_after_failures(synthetic, tmp_path, capsys):
    # So large a step makes things worse after the first epoch.
    _run(synthetic, tmp_path, '--epoch', '3', '--alpha', '0.5', '--decay-if-fail',
         '--alpha_decay', '0.5')
    log = json.loads((tmp_path / 'log').read_text())
    best, alpha = np.inf, 0.5
    for row in log:
        assert row['alpha'] == alpha
        if row['validation/perplexity'] < best:
            best = row['validation/perplexity']
        else:
            alpha /= 2
    assert alpha < 0.5, 'no epoch failed: the test needs a larger --alpha'
    assert capsys.readouterr().out.count('*lr') == round(np.log2(0.5 / alpha))


def test_decay_after_every_window(synthetic, tmp_path):
    _run(synthetic, tmp_path, '--epoch', '1', '--decay-every', '--alpha_decay', '0.99')
    row, = json.loads((tmp_path / 'log').read_text())
    assert row['alpha'] == pytest.approx(0.001 * 0.99 ** 78)  # 79 windows, the last not yet


def test_patience_stops_the_run(synthetic, tmp_path):
    result = _run(synthetic, tmp_path, '--epoch', '50', '--alpha', '0.5', '--patience', '2')
    epochs = len(json.loads((tmp_path / 'log').read_text()))
    assert epochs == result['best_epoch'] + 2 < 50


def test_other_flags(synthetic, tmp_path, capsys):
    (tmp_path / 'a').mkdir()
    result = _run(synthetic, tmp_path / 'a', '--epoch', '2', '--save-all', '1', '--test',
                  '--use-full-vocab', '--norm-vecs', '--val-interval', '3', '--layer', '2')
    assert (tmp_path / 'a' / 'epoch1.model').exists() and (tmp_path / 'a' / 'epoch2.model').exists()
    words = (tmp_path / 'a' / 'vocab.txt').read_text().splitlines()
    assert result['n_vocab'] == len(words) > 186
    assert '\tval perp' in capsys.readouterr().out
    again = _run(synthetic, tmp_path / 'b', '--epoch', '1', '--test', '--vocab',
                 str(tmp_path / 'a' / 'vocab.txt'), '--share-embedding', '--unit', '16')
    assert again['n_vocab'] == len(words)
    assert (tmp_path / 'b' / 'vocab.txt').read_text().splitlines() == words


def test_a_loss_that_is_not_finite_ends_the_run_in_one_line(synthetic, tmp_path):
    with pytest.raises(UserError, match='the loss became'):
        with np.errstate(all='ignore'):
            _run(synthetic, tmp_path, '--alpha', '1e38', '--epoch', '3')


def test_the_reset_perplexity_is_that_of_the_best_model(synthetic, tmp_path):
    from interpretable_adv import data
    from lm import evaluation
    result = _run(synthetic, tmp_path, '--epoch', '1', '--adaptive-softmax')
    nll, predictions = evaluation.review_nll(
        load_lm(str(tmp_path / 'best.model')), data.load(str(synthetic)).test.sequences)
    assert result['test_perplexity_per_review'] == pytest.approx(
        evaluation.perplexity(nll.sum(), predictions.sum()), rel=1e-9)


# Going on after an end ------------------------------------------------------------------------

@pytest.mark.parametrize('flags', [[], ['--adaptive-softmax', '--layer', '2', '--decay-if-fail']])
def test_a_run_in_two_parts_is_the_run_in_one(synthetic, tmp_path, flags):
    flags = [*flags, '--log-steps', '--log-interval', '7', '--bproplen', '25']
    whole, parts, elsewhere = (tmp_path / name for name in ('whole', 'parts', 'elsewhere'))
    expected = _run(synthetic, whole, *flags, '--epoch', '2')
    _run(synthetic, parts, *flags, '--epoch', '1')
    moved = _run(synthetic, elsewhere, *flags, '--epoch', '2', '--resume',
                 str(parts / 'snapshot.npz'))
    result = _run(synthetic, parts, *flags, '--epoch', '2', '--resume')
    for out, values in ((parts, result), (elsewhere, moved)):
        assert _losses(out) == _losses(whole)
        assert _models_equal(str(out / 'best.model'), str(whole / 'best.model'))
        for key in ('best_epoch', 'valid_perplexity', 'test_perplexity'):
            assert values[key] == expected[key]


def test_a_snapshot_of_other_settings_is_refused(synthetic, tmp_path):
    _run(synthetic, tmp_path, '--epoch', '1')
    with pytest.raises(UserError, match='alpha was 0.001 and is 0.002'):
        _run(synthetic, tmp_path, '--epoch', '2', '--alpha', '0.002', '--resume')
    with pytest.raises(UserError, match='--resume'):
        _run(synthetic, tmp_path, '--epoch', '2')


@pytest.mark.slow
def test_killed_at_any_moment_it_goes_on_bit_for_bit(start, synthetic, tmp_path):
    whole, killed = tmp_path / 'whole', tmp_path / 'killed'
    flags = ['--data_dir', synthetic, *SIZES, '--epoch', '3', '--log-steps', '--adaptive-softmax',
             '--snapshot-steps', '13', '--log-interval', '5']
    process = start('lm.pretrain', '--out', whole, *flags)
    expected, error = process.communicate()
    assert process.returncode == 0, error
    kills = 0
    random = np.random.RandomState(0)
    for _ in range(60):
        process = start('lm.pretrain', '--out', killed, '--resume', *flags)
        steps = killed / 'steps.jsonl'
        lines_before = len(steps.read_text().splitlines()) if steps.exists() else 0
        target = lines_before + random.randint(10, 100)
        while process.poll() is None:
            if steps.exists() and len(steps.read_text().splitlines()) >= target:
                os.kill(process.pid, signal.SIGKILL)
                break
            time.sleep(random.uniform(0, 0.01))
        _, error = process.communicate()
        if process.returncode == -signal.SIGKILL:
            kills += 1
            continue
        assert process.returncode == 0, error
        break
    assert kills >= 2
    assert (killed / 'steps.jsonl').read_text() == (whole / 'steps.jsonl').read_text()
    assert _models_equal(str(killed / 'best.model'), str(whole / 'best.model'))
    results = [json.loads((out / 'result.json').read_text()) for out in (killed, whole)]
    assert results[0]['test_perplexity'] == results[1]['test_perplexity']
    logs = [[{k: v for k, v in row.items() if k != 'elapsed_time'}
             for row in json.loads((out / 'log').read_text())] for out in (killed, whole)]
    assert logs[0] == logs[1]


@pytest.mark.parametrize('share, epochs', [('0', 4), ('0.999', 2)])
def test_stops_when_an_epoch_hardly_improves(synthetic, tmp_path, share, epochs):
    result = _run(synthetic, tmp_path / 'out', '--epoch', '4', '--min_improvement', share)
    assert result['epochs_trained'] == epochs and result['epoch'] == 4


def test_a_resumed_run_stops_where_an_undisturbed_one_does(synthetic, tmp_path):
    flags = '--epoch', '6', '--min_improvement', '0.05'  # 0.10, then less than 0.01
    whole = _run(synthetic, tmp_path / 'whole', *flags)
    assert whole['epochs_trained'] == 3
    _run(synthetic, tmp_path / 'parts', *flags[2:], '--epoch', '2')
    parts = _run(synthetic, tmp_path / 'parts', *flags, '--resume')
    assert parts['epochs_trained'] == whole['epochs_trained']
    assert parts['digest'] == whole['digest']
    again = _run(synthetic, tmp_path / 'parts', *flags, '--resume')
    assert again['epochs_trained'] == whole['epochs_trained']
