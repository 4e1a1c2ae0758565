import csv
import json
import shutil

import chainer
import chainer.functions as F
import numpy as np
import pytest

from interpretable_adv import analysis, cli, data, nets, perturbations
from interpretable_adv.errors import UserError
from interpretable_adv.evaluation import records
from interpretable_adv.runs import checkpoints

METHODS = ('adv', 'iadv', 'spgd')


@pytest.fixture(scope='module')
def data_dir(tmp_path_factory):
    """A small corpus of made-up words, in upstream's text format."""
    folder = tmp_path_factory.mktemp('data')
    generator = np.random.RandomState(0)
    words = [f'w{i}' for i in range(40)] + ['<b>', 'مرحبا']

    def reviews(count, offset):
        return ''.join(' '.join(generator.choice(words[offset:offset + 34],
                                                 generator.randint(3, 20))) + '\n'
                       for _ in range(count))

    for split, count in (('train', 30), ('dev', 6), ('test', 12)):
        for name, offset in (('pos', 0), ('neg', 8)):
            (folder / f'imdb_{name}_{split}.txt').write_text(reviews(count, offset), 'utf-8')
    (folder / 'imdb_unlabled.txt').write_text(reviews(20, 4), 'utf-8')
    return str(folder)


@pytest.fixture(scope='module')
def corpus(data_dir):
    return data.load(data_dir)


@pytest.fixture(scope='module')
def model_path(tmp_path_factory, corpus):
    path = tmp_path_factory.mktemp('model') / 'best.model'
    checkpoints.save_classifier(path, random_classifier(corpus))
    return str(path)


def random_classifier(corpus, seed=0, emb_dim=6):
    np.random.seed(seed)
    model = nets.Classifier(corpus.n_vocab, emb_dim, 7, 5, corpus.n_class)
    for parameter in model.params():  # larger weights, so that reviews differ in prediction
        parameter.array *= 1.7
    return model


def run(data_dir, model_path, out, *flags):
    analysis.main(['--model', model_path, '--data_dir', data_dir, '--ignore_unk', '1',
                   '--nn_k', '4', '--out', str(out), *flags])
    return list(records.read(str(out)))


@pytest.fixture(scope='module')
def recorded(tmp_path_factory, data_dir, model_path):
    out = tmp_path_factory.mktemp('records') / 'r.jsonl'
    return run(data_dir, model_path, out, '--methods', 'adv,iadv,spgd',
               '--epsilon', 'adv=3,iadv=4,spgd=8')


# Upstream's recording -----------------------------------------------------------------------

def test_matches_upstreams_analysis(tmp_path, shared, capsys):
    golden = json.loads((shared / 'golden/analysis_iadv.json').read_text(encoding='utf-8'))
    out = tmp_path / 'r.jsonl'
    analysis.main([*golden['argv'], '--data_dir', str(shared / 'golden/mini_imdb'), '--model',
                   str(shared / 'golden/upstream_classifier.model'), '--out', str(out)])
    found = list(records.read(str(out)))
    assert len(found) == 12
    right = [record for record in found if record['correct']]  # upstream skips the others
    assert len(right) == len(golden['examples'])
    for record, example in zip(right, golden['examples']):
        assert record['label'] == example['y'] == record['prediction']
        assert len(record['words']) == len(example['words'])
        for word, expected in zip(record['words'], example['words']):
            assert word['word'] == expected['word']
            assert word['toward'] == expected['toward']
            assert word['neighbors'] == expected['neighbours']
            for ours, theirs in (('cosines', 'cosines'), ('max_cosine', 'max_cosine'),
                                 ('norm', 'norm'), ('relative_norm', 'relative_norm'),
                                 ('neighbor_distance', 'neighbour_distance')):
                np.testing.assert_allclose(word[ours], expected[theirs], atol=2e-4)


# Every field against its definition ---------------------------------------------------------

def gradient_of_own_loss(model, sequence, label):
    """d loss / d word vectors of one review, from a pass of its own."""
    embedded = chainer.Variable(model.word_embed.W.array[sequence])
    with chainer.using_config('train', False):
        loss = F.softmax_cross_entropy(model.classify(embedded, [len(sequence)]),
                                       np.array([label], 'i'))
    return chainer.grad([loss], [embedded])[0].array


def expected_perturbation(method, model, sequence, label, neighbors):
    table = model.word_embed.W.array
    gradient = gradient_of_own_loss(model, sequence, label)
    lengths = [len(sequence)]
    directions = perturbations.directions(table[sequence], table[neighbors])
    if method == 'adv':
        return perturbations.advt(gradient, lengths, 3.0)
    if method == 'iadv':
        weights = perturbations.attention_gradient(gradient, directions)
        return perturbations.iadvt(weights, directions, lengths, 4.0)
    raw = perturbations.advt(gradient, lengths, 8.0)
    return perturbations.spgd(raw, directions, lengths, 0.75)[0]


def nearest_neighbors(table, word, count, limit):
    unit = table / np.linalg.norm(table, axis=1, keepdims=True)
    scores = unit[:limit] @ unit[word]
    order = [other for other in np.argsort(-scores, kind='stable') if other != word]
    return order[:count]


def test_records_say_what_the_attacks_do(recorded, corpus, model_path):
    model = nets.load_classifier(model_path)
    table = model.word_embed.W.array
    unit = table / np.linalg.norm(table, axis=1, keepdims=True)
    assert len(recorded) == 3 * 24
    away = 0
    for record in recorded:
        sequence = corpus.test.sequences[record['index']]
        label = corpus.test.labels[record['index']]
        assert record['label'] == label
        assert [word['word'] for word in record['words']] == [corpus.words[i] for i in sequence]
        neighbors = np.array([nearest_neighbors(table, word, 4, corpus.train_vocab_size + 2)
                              for word in sequence])
        shift = expected_perturbation(record['method'], model, sequence, label, neighbors)
        norms = np.linalg.norm(shift, axis=1)
        for position, word in enumerate(record['words']):
            identity = sequence[position]
            assert word['neighbors'] == [corpus.words[i] for i in neighbors[position]]
            assert word['norm'] == pytest.approx(norms[position], abs=1e-4)
            assert word['relative_norm'] == pytest.approx(norms[position] / norms.max(), abs=1e-4)
            to = table[neighbors[position]] - table[identity]
            part = shift[position] / record['epsilon']
            cosines = to @ part / np.linalg.norm(to, axis=1) / np.sqrt(1e-6 + part @ part)
            np.testing.assert_allclose(word['cosines'], cosines, atol=1e-4)
            if norms[position] == 0:
                assert word['toward'] == word['nearest'] == word['word']
                assert word['norm'] == word['max_cosine'] == word['neighbor_distance'] == 0
                continue
            toward = corpus.vocab[word['toward']]
            chosen = neighbors[position].tolist().index(toward)
            if record['method'] == 'spgd':
                assert abs(word['max_cosine']) == pytest.approx(max(abs(cosines)), abs=1e-4)
                away += word['max_cosine'] < 0
            else:
                assert word['max_cosine'] == max(word['cosines'])
            assert word['max_cosine'] == word['cosines'][chosen]
            assert word['neighbor_distance'] == pytest.approx(
                np.linalg.norm(to[chosen]), rel=1e-4)
            scores = unit @ (table[identity] + shift[position])
            assert scores[corpus.vocab[word['nearest']]] >= scores.max() - 1e-5
        with chainer.using_config('train', False), chainer.no_backprop_mode():
            clean = model([sequence]).array[0]
            attacked = model([sequence], shift).array[0]
        assert record['prediction'] == clean.argmax()
        assert record['correct'] == (clean.argmax() == label)
        assert record['prediction_adv'] == attacked.argmax()
        for name, logits in (('probability', clean), ('probability_adv', attacked)):
            assert record[name] == pytest.approx(
                float(np.exp(logits[label]) / np.exp(logits).sum()), abs=1e-4)
    assert away > 0  # so that the sign of such words has been tested


def test_attacks_lower_the_right_labels_probability(recorded):
    for method in ('adv', 'iadv'):
        drops = [record['probability'] - record['probability_adv'] for record in recorded
                 if record['method'] == method]
        assert np.mean(drops) > 0.02


def test_spgd_moves_a_quarter_of_the_words(recorded):
    for record in recorded:
        moved = sum(word['norm'] > 0 for word in record['words'])
        n_words = len(record['words'])
        assert moved == (n_words // 4 if record['method'] == 'spgd' else n_words)


def test_names_in_records(recorded):
    assert {record['epsilon'] for record in recorded if record['method'] == 'iadv'} == {4.0}
    assert recorded[0]['label_names'] == ['negative', 'positive']
    assert [record['method'] for record in recorded[:6]] == [*METHODS, *METHODS]


@pytest.mark.parametrize('batchsize', ['1', '5', '1000'])
def test_records_do_not_depend_on_the_batch(tmp_path, data_dir, model_path, recorded, batchsize):
    again = run(data_dir, model_path, tmp_path / 'r.jsonl', '--methods', 'adv,iadv,spgd',
                '--epsilon', 'adv=3,iadv=4,spgd=8', '--batchsize', batchsize)
    assert len(again) == len(recorded)
    for old, new in zip(recorded, again):
        assert (old['index'], old['method']) == (new['index'], new['method'])
        assert old['probability_adv'] == pytest.approx(new['probability_adv'], abs=1e-4)
        for a, b in zip(old['words'], new['words']):
            assert a['norm'] == pytest.approx(b['norm'], abs=1e-4)
            assert a['neighbors'] == b['neighbors']


def test_virtual_methods(tmp_path, data_dir, model_path):
    flags = '--methods', 'vat,ivat', '--epsilon', '2', '--seed'
    first = run(data_dir, model_path, tmp_path / 'a', *flags, '1')
    again = run(data_dir, model_path, tmp_path / 'b', *flags, '1')
    other = run(data_dir, model_path, tmp_path / 'c', *flags, '2')
    assert first == again and first != other
    for record in first:
        total = np.sqrt(sum(word['norm'] ** 2 for word in record['words']))
        assert 0 < total <= 2.001


def test_a_review_without_a_known_word(tmp_path, data_dir, corpus, model_path):
    folder = tmp_path / 'data'
    shutil.copytree(data_dir, folder, ignore=shutil.ignore_patterns('*.cache'))
    (folder / 'imdb_pos_test.txt').write_text('unheard of\nw1\n', encoding='utf-8')
    found = run(str(folder), model_path, tmp_path / 'r', '--methods', 'adv,iadv,spgd',
                '--limit', '2', '--epsilon', '3')
    first, second = found[:3], found[3:]
    assert [[word['word'] for word in record['words']] for record in first] == [['<eos>']] * 3
    assert [record['words'][0]['norm'] > 0 for record in first] == [True, True, False]
    assert [len(record['words']) for record in second] == [2, 2, 2]


# Choice of reviews --------------------------------------------------------------------------

def test_shortest_first_and_stable(recorded, corpus):
    lengths = [len(sequence) for sequence in corpus.test.sequences]
    expected = sorted(range(24), key=lambda i: lengths[i])  # sorted() is stable
    assert [record['index'] for record in recorded[::3]] == expected


def test_limit_indices_and_random(tmp_path, data_dir, model_path):
    def chosen(*flags):
        found = run(data_dir, model_path, tmp_path / 'r', '--methods', 'adv', *flags)
        return [record['index'] for record in found]

    everything = chosen('--limit', '0')
    assert sorted(everything) == list(range(24))
    assert chosen('--limit', '5') == chosen('--analysis_limit', '5') == everything[:5]
    assert chosen('--indices', '17,3') == [17, 3]
    sample = chosen('--sample', '6', '--seed', '1')
    assert sample == chosen('--sample', '6', '--seed', '1') and len(set(sample)) == 6
    assert sample != chosen('--sample', '6', '--seed', '2')
    assert len(chosen('--split', 'dev')) == 12


def test_texts_of_a_file(tmp_path, data_dir, corpus, model_path):
    """Texts that are test reviews, written with other marks and unknown words between, have the
    records of those reviews."""
    chosen = [index for index, sequence in enumerate(corpus.test.sequences)
              if {corpus.words[number][0] for number in sequence[:-1]} == {'w'}][-3:]
    assert len(chosen) == 3
    path = tmp_path / 'mine.jsonl'
    path.write_text(''.join(json.dumps({
        'review': 'Strange, ' + '; '.join(corpus.words[n] for n in corpus.test.sequences[i][:-1]),
        'sentiment': corpus.label_names[corpus.test.labels[i]]}) + '\n' for i in chosen))
    columns = '--text_column', 'review', '--label_column', 'sentiment'
    found = run(data_dir, model_path, tmp_path / 'r', '--texts', str(path), *columns,
                '--indices', '0,1,2')
    expected = run(data_dir, model_path, tmp_path / 'e', '--indices', ','.join(map(str, chosen)))
    assert [record.pop('index') for record in found] == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    for record in expected:
        del record['index']
    for record in found:
        assert record.pop('text').startswith('Strange, ') and record.pop('unknown') == ['Strange']
    assert found == expected


def test_texts_without_labels_are_attacked_away_from_the_prediction(
        tmp_path, data_dir, model_path, capsys):
    lines = ['w1 w2 w3', 'w20 w21, w22 w23', 'w30 w31 w32 w33']
    (tmp_path / 'mine.txt').write_text('\n'.join(lines))
    found = run(data_dir, model_path, tmp_path / 'r', '--texts', str(tmp_path / 'mine.txt'),
                '--methods', 'spgd', '--indices', '0,1,2')
    assert 'accuracy' not in capsys.readouterr().out
    assert [record['text'] for record in found] == lines
    assert all(record['label'] == record['prediction'] and 'correct' not in record
               for record in found)
    (tmp_path / 'mine.csv').write_text('text,label\n' + ''.join(
        f'"{line}",{["negative", "positive"][record["label"]]}\n'
        for line, record in zip(lines, found)))
    given = run(data_dir, model_path, tmp_path / 'r', '--texts', str(tmp_path / 'mine.csv'),
                '--methods', 'spgd', '--indices', '0,1,2')
    assert all(record.pop('correct') for record in given)
    assert given == found


def test_unknown_words_of_texts_are_reported(tmp_path, data_dir, model_path, capsys):
    (tmp_path / 'mine.txt').write_text('w1 so w2 very\nso w3\n')
    run(data_dir, model_path, tmp_path / 'r', '--texts', str(tmp_path / 'mine.txt'))
    output = capsys.readouterr().out
    assert '2 texts, 0 of them with a label' in output
    assert '3 of 6 words are unknown to the model: so (2), very\n' in output


def test_texts_need_no_corpus_where_the_run_tells_its_words(tmp_path, data_dir, corpus,
                                                             model_path):
    """The same records as with the corpus; `--model` may be the run's folder."""
    folder = tmp_path / 'run'
    folder.mkdir()
    shutil.copy(model_path, folder / 'best.model')
    checkpoints.save_vocabulary(folder / 'vocab.txt', corpus.words)
    (folder / 'args.json').write_text(json.dumps({
        'lower': 0, 'min_count': 1, 'ignore_unk': 1, 'use_unlabled_to_vocab': 1, 'nn_k': 4,
        'label_names': corpus.label_names, 'tokenizer': 'words',
        'train_vocab_size': corpus.train_vocab_size}))
    (tmp_path / 'mine.csv').write_text('text,label\n"w1 w2, w33",positive\nw20 w21 w22,\n')
    flags = ['--texts', str(tmp_path / 'mine.csv'), '--methods', 'iadv,spgd']
    analysis.main(['--model', str(folder), '--out', str(tmp_path / 'r'), *flags])
    assert list(records.read(str(tmp_path / 'r'))) == run(
        data_dir, model_path, tmp_path / 's', *flags)


@pytest.mark.parametrize('source', ['corpus', 'texts'])
def test_export(tmp_path, data_dir, corpus, model_path, language_model, capsys, source):
    checkpoints.save_lm(tmp_path / 'lm.model', language_model)
    (tmp_path / 'mine.txt').write_text('=w1 so, w2!\nw20 w21\n')
    flags = ['--methods', 'adv,spgd', '--epsilon', '20', '--limit', '6', '--batchsize', '4',
             '--lm', str(tmp_path / 'lm.model')]
    if source == 'texts':
        flags += ['--texts', str(tmp_path / 'mine.txt')]
    made = run(data_dir, model_path, tmp_path / 'r', *flags, '--export', str(tmp_path / 'x.csv'))
    assert f'x.csv: {len(made)} adversarial texts' in capsys.readouterr().out
    assert made == run(data_dir, model_path, tmp_path / 'r', *flags)
    with open(tmp_path / 'x.csv', encoding='utf-8', newline='') as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == len(made)
    for row, record in zip(rows, made):
        assert (int(row['index']), row['method']) == (record['index'], record['method'])
        for name in ('prediction', 'prediction_adv'):
            assert row[name] == corpus.label_names[record[name]]
        for name in ('probability', 'probability_adv'):
            assert float(row[name]) == record[name]
        for name, value in record['perplexity'].items():
            assert float(row[f'perplexity_{name}']) == value
        if source == 'corpus':
            assert row['label'] == corpus.label_names[record['label']]
            for column, field in (('original', 'word'), ('nearest', 'nearest'),
                                  ('direction', 'toward')):
                assert row[column] == ' '.join(word[field] for word in record['words'][:-1])
        else:
            assert row['label'] == ''
            ids = [corpus.vocab[word['toward']] for word in record['words']]
            victim = nets.load_classifier(model_path)
            logits = nets.predict(victim, [np.array(ids, 'i')])[0]
            assert row['prediction_direction'] == corpus.label_names[logits.argmax()]
    if source == 'texts':
        originals = {row['original'] for row in rows}
        assert originals == {"'=w1 so, w2!", 'w20 w21'}
        assert {row['unknown'] for row in rows} == {'so', ''}


def test_vat_does_not_depend_on_the_batch(tmp_path, data_dir, model_path):
    flags = '--methods', 'vat,ivat', '--epsilon', '3'
    assert run(data_dir, model_path, tmp_path / 'r', *flags) == run(
        data_dir, model_path, tmp_path / 's', *flags, '--batchsize', '1')


@pytest.mark.parametrize('line, message', [
    ('w1 w2\tpleased', "line 2: the label 'pleased' is none of negative, positive"),
    ('w1 w2', '1 columns'), ('!\tpositive', 'no usable text')])
def test_unusable_texts_are_told(tmp_path, data_dir, model_path, line, message):
    path = tmp_path / 'mine.tsv'
    path.write_text(f'text\tlabel\n{line}\n')
    with pytest.raises(UserError, match=message):
        run(data_dir, model_path, tmp_path / 'r', '--texts', str(path))


# Settings -----------------------------------------------------------------------------------

def test_each_method_may_have_its_own_classifier(tmp_path, data_dir, corpus, model_path):
    other = tmp_path / 'other.model'
    checkpoints.save_classifier(other, random_classifier(corpus, seed=1, emb_dim=9))
    both = run(data_dir, f'adv={model_path},iadv={other}', tmp_path / 'r', '--methods', 'adv,iadv')
    alone = run(data_dir, str(other), tmp_path / 's', '--methods', 'iadv')
    assert [record for record in both if record['method'] == 'iadv'] == alone
    assert [r for r in both if r['method'] == 'adv'] == run(
        data_dir, model_path, tmp_path / 't', '--methods', 'adv')


def test_defaults_come_from_the_training_run(tmp_path, data_dir, corpus):
    trained = {'method': 'spgd', 'xi_var': 7.0, 'nn_k': 3, 'sparsity': 0.5, 'ignore_unk': 1,
               'lower': 0, 'min_count': 1, 'use_unlabled_to_vocab': 1}
    (tmp_path / 'args.json').write_text(json.dumps(trained))
    checkpoints.save_classifier(tmp_path / 'best.model', random_classifier(corpus))
    base = ['--model', str(tmp_path / 'best.model'), '--data_dir', data_dir, '--out',
            str(tmp_path / 'r')]

    def first(*flags):
        analysis.main([*base, *flags])
        return {record['method']: record for record in reversed(list(records.read(base[-1])))}

    found = first()  # without --methods: the paper's three
    assert set(found) == set(METHODS)
    assert found['spgd']['epsilon'] == 7.0
    assert found['adv']['epsilon'] == 5.0 and found['iadv']['epsilon'] == 15.0  # the paper's
    words = found['spgd']['words']
    assert len(words[0]['neighbors']) == 3
    assert sum(word['norm'] > 0 for word in words) == len(words) // 2
    found = first('--methods', 'spgd,adv', '--xi_var', '2', '--nn_k', '5', '--sparsity', '0')
    assert found['spgd']['epsilon'] == found['adv']['epsilon'] == 2.0
    assert len(found['spgd']['words'][0]['neighbors']) == 5
    assert all(word['norm'] > 0 for word in found['spgd']['words'])
    found = first('--use_adv', '1', '--use_attn_d', '1')  # upstream's way of asking
    assert list(found) == ['iadv'] and found['iadv']['epsilon'] == 1.0


def test_upstreams_flags_and_abbreviations(shared):
    flags = json.loads((shared / 'golden/upstream_cli.json').read_text())['analysis.py']
    parser = analysis.make_parser()
    defaults = vars(parser.parse_args([]))
    names = [flag for entry in flags for flag in entry['flags']]
    kinds = {'int': int, 'float': float, 'str': str}
    for entry in flags:
        name = entry['flags'][0].lstrip('-')
        assert defaults[name] == entry['default'], name
        value = {'int': '2' if name == 'n_class' else '1', 'float': '0.5', 'str': 'x'}.get(
            entry.get('type'), 'imdb')
        expected = kinds.get(entry.get('type'), str)(value)
        for flag in entry['flags']:
            assert vars(parser.parse_args([flag, value]))[name] == expected
        for length in range(3, len(entry['flags'][0])):
            short = entry['flags'][0][:length]
            if sum(other.startswith(short) for other in names) == 1:
                assert vars(parser.parse_args([short, value]))[name] == expected, short


# Perplexities -------------------------------------------------------------------------------

@pytest.fixture(scope='module')
def language_model(corpus):
    from lm.nets import RNNForLM
    np.random.seed(3)
    model = RNNForLM(corpus.n_vocab, 8, 6, dropout=0)
    for parameter in model.params():
        parameter.array *= 8
    return model


def reference_perplexity(model, vectors, ids):
    """Word by word: each is predicted from the vectors of all words before it."""
    nll = 0
    with chainer.using_config('train', False), chainer.no_backprop_mode():
        for position in range(1, len(ids)):
            hidden, _ = model.hidden(chainer.Variable(vectors[:position]), [position])
            nll -= model.log_probabilities(hidden).array[-1, ids[position]]
    return float(np.exp(nll / (len(ids) - 1)))


def test_perplexities_in_records(tmp_path, data_dir, corpus, model_path, language_model):
    checkpoints.save_lm(tmp_path / 'lm.model', language_model)
    found = run(data_dir, model_path, tmp_path / 'r', '--methods', 'spgd,adv', '--epsilon', '20',
                '--lm', str(tmp_path / 'lm.model'), '--limit', '6')
    table = language_model.embed.W.array
    for record in found:
        values = record['perplexity']
        for version, key in (('clean', 'word'), ('nearest', 'nearest'), ('direction', 'toward')):
            ids = np.array([corpus.vocab[word[key]] for word in record['words']])
            expected = reference_perplexity(language_model, table[ids], ids)
            assert values[version] == pytest.approx(expected, rel=1e-3), version
        if record['method'] == 'adv':
            assert len(set(values.values())) == 4
    resting = run(data_dir, model_path, tmp_path / 'r', '--methods', 'spgd', '--sparsity', '1',
                  '--lm', str(tmp_path / 'lm.model'), '--limit', '3')
    for record in resting:
        assert len({round(value, 2) for value in record['perplexity'].values()}) == 1


# Errors -------------------------------------------------------------------------------------

@pytest.mark.parametrize('flags, message', [
    (['--model', ''], '--model is missing'),
    (['--model', 'absent.model'], 'absent.model'),
    (['--model', 'adv=absent.model', '--methods', 'adv,iadv'], 'no value for the method iadv'),
    (['--methods', 'advt'], 'advt is not one of'),
    (['--epsilon', 'much'], '--epsilon much'),
    (['--epsilon', 'adv=-1', '--methods', 'adv'], '--epsilon -1'),
    (['--epsilon', 'adv=1,3', '--methods', 'adv'], '--epsilon 3'),
    (['--nn_k', '1000'], '--nn_k 1000'),
    (['--sparsity', '1.5'], '1.5 is not between 0 and 1'),
    (['--indices', '99'], '--indices 99'),
    (['--indices', 'x'], '--indices x'),
    (['--indices', '1', '--sample', '2'], 'exclude each other'),
    (['--sample', '99'], '--sample 99'),
    (['--use_attn_d', '1'], 'choose no single attack'),
    (['--dataset', 'elec'], '--dataset elec'),
    (['--use_rational', '1'], '--use_rational'),
    (['--data_dir', 'nowhere'], 'nowhere'),
    (['--min_count', '5'], 'was trained with'),
    (['--lm', 'absent.lm'], 'absent.lm'),
    (['--out', 'nowhere/r.jsonl'], 'cannot write'),
    (['--gpu', '7'], '@cupy:7'),
    (['--export', 'nowhere/x.csv'], 'cannot write'),
    (['--export', 'r.jsonl'], '--export and --out name one file'),
    (['--texts', 'absent.txt'], 'absent.txt'),
    (['--texts', 'x.doc'], 'x.doc'),
])
def test_errors_are_one_line_and_leave_nothing(tmp_path, monkeypatch, capsys, data_dir, model_path,
                                               flags, message):
    monkeypatch.chdir(tmp_path)
    base = ['--model', model_path, '--data_dir', data_dir, '--ignore_unk', '1', '--nn_k', '4',
            '--out', 'r.jsonl']
    with pytest.raises(SystemExit) as caught:
        cli.run(analysis.main, base + flags)
    assert caught.value.code == 2
    error = capsys.readouterr().err
    assert error.startswith('error: ') and error.count('\n') == 1
    assert message in error
    assert list(tmp_path.iterdir()) == []


def test_a_failure_on_the_way_leaves_the_old_records(tmp_path, data_dir, model_path, monkeypatch):
    out = tmp_path / 'r.jsonl'
    out.write_text('old\n')
    calls = []

    def fail_in_second_batch(*arguments):
        calls.append(arguments)
        if len(calls) == 6:
            raise UserError('stopped')
        return make_record(*arguments)

    make_record = records.make_record
    monkeypatch.setattr(records, 'make_record', fail_in_second_batch)
    with pytest.raises(UserError, match='stopped'):
        run(data_dir, model_path, out, '--methods', 'adv', '--batchsize', '4')
    assert out.read_text() == 'old\n' and [file.name for file in tmp_path.iterdir()] == ['r.jsonl']


def test_summary_and_progress(tmp_path, data_dir, model_path, capsys):
    run(data_dir, model_path, tmp_path / 'r', '--methods', 'adv,spgd', '--progress', 'on')
    output = capsys.readouterr()
    assert '24 of 24 reviews' in output.err
    assert 'adv: ε 5,' in output.out and '100.0 % of words moved' in output.out
    assert 'spgd: ε 25,' in output.out and '24 reviews, 2 methods' in output.out
