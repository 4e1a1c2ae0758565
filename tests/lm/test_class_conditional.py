"""The class-conditional language model: its training, what it reports, and what it guides."""
import json

import chainer
import numpy as np
import pytest
from chainer import gradient_check, testing

from interpretable_adv import analysis, attacks, data, nets, train
from interpretable_adv.errors import UserError
from interpretable_adv.runs import checkpoints
from lm import evaluation, perplexity, pretrain, streams
from lm.guide import Guide
from lm.nets import RNNForLM, load_lm

PLAIN = ['--unit', '12', '--n-units-word', '8', '--batchsize', '8', '--bproplen', '10', '--epoch',
         '1', '--alpha', '0.01', '--adaptive-softmax', '--cutoffs', '40,90', '--progress', 'off']
CLASSES = ['--class_conditional', '1', '--batchsize', '6', '--bproplen', '7', '--epoch', '2',
           '--valid_split', 'dev', '--dropout', '0.2', '--progress', 'off']
TRAIN = ['--lower', '0', '--ignore_unk', '1', '--emb_dim', '8', '--hidden_dim', '9',
         '--hidden_cls_dim', '5', '--batchsize', '16', '--n_epoch', '1', '--nn_k', '4', '--xi_var',
         '3', '--progress', 'off', '--log_steps', '1']


@pytest.fixture(scope='module')
def plain(synthetic, tmp_path_factory):
    out = tmp_path_factory.mktemp('plain') / 'lm'
    pretrain.main(['--data_dir', str(synthetic), '--out', str(out), *PLAIN])
    return out / 'best.model'


@pytest.fixture(scope='module')
def conditional(synthetic, plain, tmp_path_factory):
    out = tmp_path_factory.mktemp('classes') / 'lm'
    pretrain.main(['--data_dir', str(synthetic), '--out', str(out), '--init', str(plain), *CLASSES])
    return out / 'best.model'


def read(path):
    return json.loads(path.read_text(encoding='utf-8'))


# Windows ----------------------------------------------------------------------------------------

def test_every_review_is_read_once_per_order_from_its_beginning_to_its_end():
    random = np.random.RandomState(0)
    sequences = [np.append(random.randint(2, 99, n), 0).astype('i') for n in (3, 17, 1, 8, 0, 30)]
    labels = np.array([0, 1, 0, 1, 1, 0])
    np.random.seed(1)
    iterator = streams.ReviewIterator(sequences, labels, 2, 5)
    assert iterator.n_words == 3 + 17 + 1 + 8 + 30
    texts, read_before = [[], []], 0
    finished = []
    for _ in range(40):
        window = next(iterator)
        assert (window.lengths <= 5).all() and (window.lengths >= 1).all()
        ends = np.cumsum(window.lengths)
        for stream, (start, end) in enumerate(zip(ends - window.lengths, ends)):
            if window.begins[stream]:
                texts[stream] = []
            texts[stream] += window.words[start:end].tolist()
            np.testing.assert_array_equal(window.targets[start:end - 1],
                                          window.words[start + 1:end])
            if window.targets[end - 1] == 0:
                finished.append((texts[stream] + [0], window.labels[stream]))
        read_before += ends[-1]
        assert iterator.position == read_before
        assert iterator.epoch == read_before // 59
        assert iterator.is_new_epoch == (read_before // 59 > (read_before - ends[-1]) // 59)
    known = {tuple(sequence): label for sequence, label in zip(sequences, labels)}
    assert all(known[tuple(text)] == label for text, label in finished)
    for whole in (finished[:5], finished[5:10]):  # each order deals out all five
        assert len({tuple(text) for text, _ in whole}) >= 4
    counts = [sum(text == sequence.tolist() for text, _ in finished[:15])
              for sequence in sequences if len(sequence) > 1]
    assert min(counts) >= 2


def test_streams_of_a_window_can_be_parted():
    np.random.seed(0)
    sequences = [np.append(np.arange(2, 2 + n), 0) for n in (3, 9, 5)]
    window = next(streams.ReviewIterator(sequences, np.arange(3), 3, 4))
    parts = [window.of(range(0, 1)), window.of(range(1, 3))]
    for name in window._fields:
        np.testing.assert_array_equal(np.concatenate([getattr(p, name) for p in parts]),
                                      getattr(window, name))


# The model --------------------------------------------------------------------------------------

def test_training_starts_from_the_given_model(plain, synthetic):
    """The vectors of classes are zero, so each class has the plain model's probabilities."""
    from lm.nets import with_classes
    corpus = data.load(str(synthetic))
    model = with_classes(str(plain), corpus.words, corpus.n_class, 0)
    before = load_lm(str(plain))
    expected, _ = evaluation.review_nll(before, corpus.test.sequences)
    found = evaluation.class_nll(model, corpus.test.sequences)
    assert found.shape == (len(corpus.test.labels), 2)
    for label in range(2):
        np.testing.assert_array_equal(found[:, label], expected)


def test_the_checkpoint_has_one_key_more(plain, conditional, tmp_path):
    before, after = (checkpoints.read_arrays(str(path)) for path in (plain, conditional))
    assert set(after) == {*before, 'class_embed/W'}
    assert after['class_embed/W'].shape == (2, 8) and after['class_embed/W'].any()
    assert all((after[name] != before[name]).any() for name in before if name != 'output/cutoff')
    with pytest.raises(UserError, match='is a class-conditional language model'):
        load_lm(str(conditional))
    with pytest.raises(UserError, match='lacks class_embed/W'):
        load_lm(str(plain), class_conditional=True)
    del after['class_embed/W']
    np.savez(tmp_path / 'without.npz', **after)
    load_lm(str(tmp_path / 'without.npz'))


def test_one_step_is_that_of_a_plain_computation(plain, synthetic):
    """Two windows of reviews, against the model applied to whole reviews word by word."""
    from lm.nets import with_classes
    from lm.updater import ReviewUpdater
    corpus = data.load(str(synthetic))
    model = with_classes(str(plain), corpus.words, 2, 0)
    model.class_embed.W.array[...] = np.random.RandomState(0).normal(size=(2, 8))
    optimizer = chainer.optimizers.SGD(0).setup(model)
    np.random.seed(5)
    iterator = streams.ReviewIterator(*corpus.train, 3, 4)
    updater = ReviewUpdater(iterator, optimizer)
    for _ in range(9):
        window = next(iterator)
        reviews, ends = iterator._review.copy(), iterator._offset.copy()
        with chainer.using_config('train', False):
            nll, share = updater.read(model, window)
        assert share == len(window.words) / 12
        expected = []
        for review, end, length in zip(reviews, ends, window.lengths):
            words = corpus.train.sequences[review]
            vectors = (model.embed.W.array[words[:end]]
                       + model.class_embed.W.array[corpus.train.labels[review]])
            expected.append(model.score_embeddings(vectors, words[1:end + 1])[end - length:])
        np.testing.assert_allclose(nll.array, np.concatenate(expected), rtol=1e-5)


def test_what_it_reports(conditional, synthetic):
    result = read(conditional.parent / 'result.json')
    corpus = data.load(str(synthetic))
    model = load_lm(str(conditional), corpus.words, class_conditional=True)
    for name in ('dev', 'test'):
        split, found = getattr(corpus, name), result['classes'][name]
        totals, right = np.zeros((2, 2)), 0
        for words, label in zip(split.sequences, split.labels):
            nll = []
            for other in range(2):
                vectors = model.embed.W.array[words[:-1]] + model.class_embed.W.array[other]
                nll.append(model.score_embeddings(vectors, words[1:]).astype('d').sum())
            totals[label] += nll[label], len(words) - 1
            right += np.argmin(nll) == label
        assert found['bayes_accuracy'] == pytest.approx(100 * right / len(split.labels))
        assert found['perplexity'] == pytest.approx(np.exp(np.divide(*totals.sum(axis=0))),
                                                    rel=1e-5)
        assert found['perplexity_per_class'] == pytest.approx(dict(zip(
            corpus.label_names, np.exp(totals[:, 0] / totals[:, 1]))), rel=1e-5)
    assert result['valid_perplexity'] == result['classes']['dev']['perplexity']
    assert 'test_perplexity' not in result


def test_it_learns_what_distinguishes_the_classes(tmp_path):
    """Two words that only one class has: afterwards the Bayes decision is right."""
    random = np.random.RandomState(0)
    folder = tmp_path / 'data'
    rows = {}
    for split, count in (('train', 80), ('dev', 30), ('test', 30)):
        texts = []
        for i in range(count):
            words = random.choice(['a', 'b', 'c'], 9).tolist()
            words[random.randint(1, 9)] = ('good', 'bad')[i % 2]
            texts.append(f'{" ".join(words)}\t{("yes", "no")[i % 2]}')
        rows[split] = tmp_path / f'{split}.tsv'
        rows[split].write_text('text\tlabel\n' + '\n'.join(texts) + '\n')
    from interpretable_adv.data.__main__ import main as prepare
    prepare(['prepare', '--dataset', 'own', '--data_dir', str(folder),
             *(part for split in rows for part in (f'--{split}', str(rows[split])))])
    pretrain.main(['--data_dir', str(folder), '--out', str(tmp_path / 'lm'), '--unit', '16',
                   '--n-units-word', '8', '--batchsize', '4', '--bproplen', '5', '--epoch', '2',
                   '--alpha', '0.01', '--dropout', '0', '--progress', 'off'])
    pretrain.main(['--data_dir', str(folder), '--out', str(tmp_path / 'classes'), '--init',
                   str(tmp_path / 'lm' / 'best.model'), '--class_conditional', '--batchsize', '4',
                   '--epoch', '15', '--alpha', '0.01', '--dropout', '0', '--progress', 'off'])
    assert read(tmp_path / 'classes' / 'result.json')['classes']['test']['bayes_accuracy'] > 90


def test_a_resumed_run_ends_where_a_whole_one_does(plain, synthetic, tmp_path):
    common = ['--data_dir', str(synthetic), '--init', str(plain), *CLASSES, '--log_steps', '1',
              '--snapshot_steps', '5']
    pretrain.main([*common, '--out', str(tmp_path / 'whole')])
    pretrain.main([*common, '--out', str(tmp_path / 'parts'), '--epoch', '1'])
    pretrain.main([*common, '--out', str(tmp_path / 'parts'), '--resume'])
    whole, parts = (read(tmp_path / name / 'result.json') for name in ('whole', 'parts'))
    assert parts['digest'] == whole['digest'] and parts['classes'] == whole['classes']
    assert ((tmp_path / 'parts' / 'steps.jsonl').read_text()
            == (tmp_path / 'whole' / 'steps.jsonl').read_text())


def test_data_flags_are_those_of_the_model_it_starts_from(plain, tmp_path):
    (tmp_path / 'args.json').write_text('{"lower": 1, "min_count": 4, "use_full_vocab": false}')
    flags = pretrain.parse(['--class_conditional', '--init', str(tmp_path / 'best.model')])
    assert (flags.lower, flags.min_count) == (1, 4)
    flags = pretrain.parse(['--class_conditional', '--init', str(tmp_path / 'best.model'),
                            '--min_count', '2'])
    assert (flags.lower, flags.min_count) == (1, 2)


@pytest.mark.parametrize('arguments, message', [
    (['--class_conditional'], 'belong together'), (['--init', 'x'], 'belong together'),
    (['--class_conditional', '--init', 'nowhere'], 'no such file'),
    (['--class_conditional', '--init', 'PLAIN', '--test'], 'leave out'),
    (['--class_conditional', '--init', 'CLASSES'], 'class-conditional already'),
    (['--class_conditional', '--init', 'PLAIN', '--min_count', '3'], 'was trained with')])
def test_what_cannot_be_is_refused(arguments, message, plain, conditional, synthetic, tmp_path):
    paths = {'PLAIN': str(plain), 'CLASSES': str(conditional)}
    with pytest.raises(UserError, match=message):
        pretrain.main(['--data_dir', str(synthetic), '--out', str(tmp_path / 'out'),
                       *(paths.get(part, part) for part in arguments)])
    assert not (tmp_path / 'out').exists()


# The guide --------------------------------------------------------------------------------------

def random_model(dtype=np.float32, **options):
    np.random.seed(2)
    model = RNNForLM(30, 6, 5, dropout=0.3, n_class=3, **options)
    model.class_embed.W.array[...] = np.random.normal(size=(3, 5))
    if dtype != np.float32:
        with chainer.using_config('dtype', dtype):
            for parameter in model.params():
                parameter.array = parameter.array.astype(dtype)
    return model


def review_batch(dtype=np.float32):
    random = np.random.RandomState(0)
    lengths = [6, 1, 9, 2]
    ids = random.randint(1, 30, sum(lengths)).astype('i')
    ids[np.cumsum(lengths) - 1] = 0
    return ids, lengths, np.array([1, 0, 2, 1]), random.normal(size=(18, 5)).astype(dtype)


@pytest.mark.parametrize('options', [{}, {'adaptive_softmax': True, 'cutoff': [8, 20]}])
def test_the_guide_is_the_numerical_gradient(options):
    model = random_model(np.float64, **options)
    ids, lengths, labels, perturbation = review_batch(np.float64)

    def log_likelihood():
        total, start = 0.0, 0
        for length, label in zip(lengths, labels):
            part = slice(start, start + length - 1)
            if length > 1:
                vectors = (model.embed.W.array[ids[part]] + model.class_embed.W.array[label]
                           + perturbation[part])
                total -= model.score_embeddings(vectors, ids[start + 1:start + length]).sum()
            start += length
        return np.array(0.3 * total)

    expected, = gradient_check.numerical_grad(
        lambda: (log_likelihood(),), (perturbation,), (np.array(1.0),), eps=1e-5)
    found = Guide(model, 0.3)(ids, lengths, labels, perturbation)
    testing.assert_allclose(found, expected, atol=1e-6, rtol=1e-5)
    assert not found[np.cumsum(lengths) - 1].any() and found[0].any()


def test_the_guide_does_not_depend_on_the_batch_and_draws_nothing():
    model = random_model(adaptive_softmax=True, cutoff=[8, 20])
    ids, lengths, labels, perturbation = review_batch()
    guide = Guide(model, 1.0)
    model.cleargrads()
    state = np.random.get_state()[1].copy()
    with chainer.using_config('train', True):
        together = guide(ids, lengths, labels, perturbation)
    np.testing.assert_array_equal(np.random.get_state()[1], state)
    ends = np.cumsum(lengths)
    for i, (start, end) in enumerate(zip(ends - lengths, ends)):
        alone = guide(ids[start:end], lengths[i:i + 1], labels[i:i + 1], perturbation[start:end])
        np.testing.assert_array_equal(alone, together[start:end])
    assert all(parameter.grad is None for parameter in model.params())


def test_the_gradient_of_hidden_alone_is_that_with_all_others():
    """An attack asks for less; it gets the same bits."""
    for options in ({}, {'adaptive_softmax': True, 'cutoff': [8, 20]}, {'share_embedding': True,
                                                                        'n_units_word': 6}):
        np.random.seed(0)
        model = RNNForLM(30, 6, **{'n_units_word': 5, **options})
        random = np.random.RandomState(1)
        hidden, targets = random.normal(size=(7, 6)).astype('f'), random.randint(0, 12, 7)
        both = []
        for whole in (True, False):
            variable = chainer.Variable(hidden)
            loss = chainer.functions.sum(model.nll(variable, targets))
            if whole:
                loss.backward()
                both.append(variable.grad)
            else:
                both.append(chainer.grad([loss], [variable])[0].array)
        np.testing.assert_array_equal(*both)


def test_an_attack_follows_both_terms(conditional, synthetic):
    """−log p(y|x) + λ log p(x|y): the direction of the attack is the gradient of their sum."""
    corpus = data.load(str(synthetic))
    model = load_lm(str(conditional), corpus.words, class_conditional=True)
    np.random.seed(0)
    classifier = nets.Classifier(corpus.n_vocab, 8, 9, 5, dropout=0)
    sequences, labels = corpus.test.sequences[:4], corpus.test.labels[:4]
    ids, lengths = np.concatenate(sequences), [len(sequence) for sequence in sequences]
    start = chainer.Variable(np.zeros((len(ids), 8), 'f'))
    loss = attacks.own_losses(labels)(
        classifier.classify(classifier.word_embed.W.array[ids] + start, lengths))
    begin = 0
    for sequence, label in zip(sequences, labels):
        part = slice(begin, begin + len(sequence) - 1)
        vectors = model.embed.W.array[sequence[:-1]] + model.class_embed.W.array[label]
        nll, _ = model.score(vectors + start[part], sequence[1:], [len(sequence) - 1])
        loss -= 0.1 * chainer.functions.sum(nll)
        begin += len(sequence)
    gradient = chainer.grad([loss], [start])[0].array
    expected = [4 * part / np.linalg.norm(part)
                for part in np.split(gradient.astype('d'), np.cumsum(lengths)[:-1])]
    found = attacks.AdvT(4.0, guide=Guide(model, 0.1))(
        classifier, ids, lengths, attacks.own_losses(labels))
    np.testing.assert_allclose(found.perturbation, np.concatenate(expected), atol=1e-4)


# In the commands --------------------------------------------------------------------------------

def train_run(synthetic, out, method, *more):
    train.main(['--data_dir', str(synthetic), '--out', str(out), '--method', method, *TRAIN,
                *map(str, more)])
    return read(out / 'result.json')['digest']


@pytest.mark.parametrize('method', ['adv', 'spgd'])
def test_training_with_weight_zero_is_plain_training(method, conditional, synthetic, tmp_path):
    digests = [train_run(synthetic, tmp_path / name, method, *flags) for name, flags in (
        ('plain', []), ('zero', ['--class_lm', conditional, '--class_lm_weight', 0]),
        ('one', ['--class_lm', conditional]))]
    assert digests[0] == digests[1] != digests[2]
    steps = [json.loads(line) for line in (tmp_path / 'one' / 'steps.jsonl').read_text().split('\n')
             if line]
    assert all(step['gradient_norm'] > 0 and step['class_lm_gradient_norm'] > 0 for step in steps)
    assert 'gradient_norm' not in (tmp_path / 'plain' / 'steps.jsonl').read_text()
    args = read(tmp_path / 'one' / 'args.json')
    assert args['class_lm'] == str(conditional) and args['class_lm_weight'] == 1.0


def test_a_guided_run_can_be_resumed(conditional, synthetic, tmp_path):
    flags = ['--class_lm', conditional, '--class_lm_weight', 0.1, '--dropout', 0.3]
    whole = train_run(synthetic, tmp_path / 'whole', 'spgd', *flags, '--n_epoch', 2)
    train_run(synthetic, tmp_path / 'parts', 'spgd', *flags)
    parts = train_run(synthetic, tmp_path / 'parts', 'spgd', *flags, '--n_epoch', 2, '--resume')
    assert whole == parts


@pytest.mark.parametrize('arguments, message', [
    (['--method', 'iadv', '--class_lm', 'CLASSES'], 'of adv, spgd, not of iadv'),
    (['--method', 'adv', '--class_lm', 'PLAIN'], 'lacks class_embed/W'),
    (['--method', 'adv', '--class_lm', 'CLASSES', '--emb_dim', '6'], 'word vectors of 8, .* of 6'),
    (['--method', 'adv', '--class_lm', 'CLASSES', '--min_count', '3'], 'was trained with'),
    (['--method', 'adv', '--class_lm', 'nowhere'], 'no such file')])
def test_what_cannot_guide_is_refused(arguments, message, plain, conditional, synthetic, tmp_path):
    paths = {'PLAIN': str(plain), 'CLASSES': str(conditional)}
    with pytest.raises(UserError, match=message):
        train.main(['--data_dir', str(synthetic), '--out', str(tmp_path / 'out'), *TRAIN,
                    *(paths.get(part, part) for part in arguments)])
    assert not (tmp_path / 'out').exists()


METHODS = 'adv,spgd,hotflip,hotflip_greedy'


def test_the_commands_of_evaluation_are_guided(plain, conditional, synthetic, tmp_path, capsys):
    train_run(synthetic, tmp_path / 'run', 'spgd')
    model = str(tmp_path / 'run' / 'best.model')

    def table(*flags):
        perplexity.main(['--lm', str(plain), '--model', model, '--data_dir', str(synthetic),
                         '--methods', METHODS, '--n_samples', '12', '--epsilon', 'adv=2,spgd=9',
                         '--json', str(tmp_path / 'table.json'), *map(str, flags)])
        return {row['method']: row for row in read(tmp_path / 'table.json')['rows']}

    def records(*flags):
        analysis.main(['--model', model, '--data_dir', str(synthetic), '--methods', METHODS,
                       '--limit', '6', '--epsilon', 'adv=2,spgd=9', '--out',
                       str(tmp_path / 'records.jsonl'), *map(str, flags)])
        return (tmp_path / 'records.jsonl').read_text()

    unguided, guided = table(), table('--class_lm', conditional, '--class_lm_weight', 10)
    for method in METHODS.split(','):
        assert unguided[method]['scores'] != guided[method]['scores']
        assert guided[method]['settings']['class_lm_weight'] == 10
        assert set(guided[method]['gradient_norms']) == {'loss', 'class_lm'}
        assert unguided[method]['gradient_norms'] is None
    zero = table('--class_lm', conditional, '--class_lm_weight', 0)
    one = table('--class_lm', f'spgd={conditional}', '--class_lm_weight', 10)
    for method in METHODS.split(','):
        assert zero[method] == unguided[method]
        assert one[method]['scores'] == (unguided if method == 'adv' else guided)[method]['scores']
    assert records() == records('--class_lm', conditional, '--class_lm_weight', 0)
    assert records() != records('--class_lm', conditional)


def test_a_guided_classifier_is_attacked_with_its_guide(plain, conditional, synthetic, tmp_path):
    train_run(synthetic, tmp_path / 'run', 'spgd', '--class_lm', conditional, '--class_lm_weight',
              0.5)
    perplexity.main(['--lm', str(plain), '--model', str(tmp_path / 'run' / 'best.model'),
                     '--data_dir', str(synthetic), '--methods', 'spgd_lm', '--n_samples', '5',
                     '--json', str(tmp_path / 'table.json')])
    row, = read(tmp_path / 'table.json')['rows']
    assert row['settings']['class_lm'] == str(conditional)
    assert row['settings']['class_lm_weight'] == 0.5 and row['epsilon'] == 3.0
