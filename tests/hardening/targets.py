"""The readers: their files, how these are damaged, how they are read, and what may come out."""
import contextlib
import io
import json
import os
import pathlib
import shutil
import tarfile

import numpy as np

from experiments import check, collect, grid_search, paper_tables, presets, results, state
from experiments import plan as plans
from interpretable_adv import (
    analysis,
    api,
    data,
    evaluate,
    explore,
    nets,
    predict,
    settings,
    train,
    visualize,
)
from interpretable_adv.data import custom, imdb, text_files
from interpretable_adv.errors import UserError
from interpretable_adv.nn import kernels
from interpretable_adv.runs import checkpoints, extensions, files
from lm import nets as lm_nets
from tests import test_old_runs
from tests.experiments import finished_runs
from tests.hardening import mutations
from tests.interpretable_adv.conftest import example_record

ROOT = pathlib.Path(__file__).resolve().parents[2]
OLD = ROOT / 'tests' / 'data' / 'paper_size_1'
CORPUS = ROOT / 'tests' / 'data' / 'golden' / 'synthetic' / 'mini_synthetic'
FLAGS = {kind: [str(flag) for flag in flags] for kind, (_, flags) in test_old_runs.RUNS.items()}
TABLES = (paper_tables.table1, paper_tables.table2, paper_tables.table3,
          paper_tables.significance_table, paper_tables.equal_strength, grid_search.table)


class Target:
    """A reader.

    Attributes:
        weight: its share of the cases.
    """

    weight = 10

    def make(self, folder):
        """Writes the files as the commands leave them."""

    def damage(self, random, folder):
        """Damages them; returns True where they must be refused."""

    def read(self, folder):
        """Reads them; the value that comes back is right, or `AssertionError` is raised."""


def copy_corpus(folder):
    shutil.copytree(CORPUS, folder / 'data', ignore=shutil.ignore_patterns('*.cache'))
    return data.load(folder / 'data', lower=True, min_count=2, ignore_unk=False)


class OfOneFile(Target):
    """Damages a file, by one of some mutations."""

    name = ''
    mutations = mutations.BYTES
    must = True  # whether what a mutation says must be refused, must be

    def damage(self, random, folder):
        path = folder / self.name
        mutate = mutations.special if random.random() < 0.03 else random.choice(self.mutations)
        before = path.read_bytes()
        found = mutate(random, path)
        if not path.is_symlink() and path.is_file() and path.read_bytes() == before:
            return None
        return found if self.must or mutate is mutations.special else None


# Models ---------------------------------------------------------------------------------------

class Classifier(OfOneFile):
    name = 'run/best.model'
    mutations = (*mutations.BYTES, *mutations.HDF5, *mutations.HDF5)
    weight = 14

    def make(self, folder):
        corpus = copy_corpus(folder)
        (folder / 'run').mkdir()
        shutil.copy(OLD / 'classifier' / 'best.model', folder / 'run')
        checkpoints.save_vocabulary(folder / 'run' / 'vocab.txt', corpus.words)

    def read(self, folder):
        corpus = data.load(folder / 'data', lower=True, min_count=2, ignore_unk=False)
        model = nets.load_classifier(folder / self.name, corpus.words, corpus.n_class)
        logits = nets.predict(model, corpus.test.sequences[:3])
        assert logits.shape == (3, 2)
        for name, parameter in model.namedparams():
            assert parameter.dtype == np.float32 and np.isfinite(parameter.array).all(), name


class EvaluateCommand(Classifier):
    """The whole command, with any of its files damaged."""

    weight = 6

    def make(self, folder):
        super().make(folder)
        (folder / 'run' / 'args.json').write_text(
            '{"lower": 1, "min_count": 2, "ignore_unk": 0, "use_unlabled_to_vocab": 1}')

    def damage(self, random, folder):
        self.name = random.choice(['run/best.model', 'run/vocab.txt', 'run/args.json'])
        self.mutations = {'model': Classifier.mutations, 'txt': mutations.BYTES, 'json': (
            mutations.json_value,)}[self.name.rpartition('.')[2]]
        return super().damage(random, folder)

    def read(self, folder):
        out = folder / 'predictions.csv'
        with contextlib.redirect_stdout(io.StringIO()):
            evaluate.main(['--model', str(folder / 'run' / 'best.model'), '--data_dir',
                           str(folder / 'data'), '--predictions', str(out)])
        labels, predictions = results.read_predictions(out)
        assert len(labels) == 40 and set(labels.tolist()) == {0, 1}
        assert set(predictions.tolist()) <= {0, 1}


class OwnSentences(EvaluateCommand):
    """`interpretable_adv.load` of a run with a damaged file, and what the model then answers."""

    weight = 4

    def make(self, folder):
        super().make(folder)
        words = data.read_vocabulary(folder / 'run' / 'vocab.txt')
        (folder / 'run' / 'args.json').write_text(json.dumps(
            {'lower': 1, 'ignore_unk': 0, 'label_names': ['bad', 'good'],
             'vocab_sha256': data.vocabulary_sha256(words)}))

    def read(self, folder):
        model = api.load(folder / 'run')
        prediction, = model.predict(['a b c'])
        assert abs(sum(prediction.probabilities.values()) - 1) < 1e-5
        attack, = model.attack(['a b c'], k=2)
        assert json.loads(json.dumps(attack.to_dict(), allow_nan=False))['method'] == 'spgd'


class PredictCommand(Target):
    """`predict --texts` with the embedded classifier."""

    weight = 3

    def make(self, folder):
        Texts().make(folder)

    def damage(self, random, folder):
        self.texts = Texts()
        return self.texts.damage(random, folder)

    def read(self, folder):
        with contextlib.redirect_stdout(io.StringIO()) as shown, \
                contextlib.redirect_stderr(io.StringIO()):
            predict.main(['--texts', str(folder / self.texts.name), '--json'])
        for found in json.loads(shown.getvalue()):
            assert found['label'] in ('negative', 'positive') and 0.5 <= found['probability'] <= 1


class Request(Target):
    """What the live page may be asked."""

    weight = 6
    explorer = None

    def make(self, folder):
        type(self).explorer = type(self).explorer or explore.Explorer(api.load('demo'), 'demo')
        (folder / 'request.json').write_text(json.dumps({
            'text': 'A good film .', 'methods': ['spgd', 'adv'], 'epsilon': {'spgd': 5, 'adv': 1},
            'sparsity': 0.5, 'k': 3, 'iterations': 2, 'label': 'positive'}))

    def damage(self, random, folder):
        (mutations.json_value if random.random() < 0.8 else random.choice(mutations.BYTES))(
            random, folder / 'request.json')

    def read(self, folder):
        try:
            answer = self.explorer.attack(explore.parse((folder / 'request.json').read_bytes()))
        except explore.RefusedError as error:
            raise UserError(str(error)) from error
        json.dumps(answer, allow_nan=False).encode()
        assert answer['records'] and answer['prediction'] in ('negative', 'positive')


class LanguageModel(OfOneFile):
    name = 'run/best.model'
    mutations = (*mutations.BYTES, *mutations.NPZ)

    def make(self, folder):
        (folder / 'run').mkdir()
        shutil.copy(OLD / 'language_model' / 'best.model', folder / 'run')

    def read(self, folder):
        model = lm_nets.load_lm(folder / self.name)
        arrays = {name.lstrip('/'): parameter.array for name, parameter in model.namedparams()}
        arrays['output/cutoff'] = model.output.cutoff
        expected = checkpoints.read_arrays(OLD / 'language_model' / 'best.model')
        assert arrays.keys() == expected.keys()
        for name, array in arrays.items():  # checksums vouch for the data, not for their headers
            assert array.shape == expected[name].shape and np.isfinite(array).all(), name


class Snapshot(OfOneFile):
    """`--resume`; a snapshot that is accepted leads to the same bits."""

    name = 'run/snapshot.npz'
    mutations = (*mutations.BYTES, *mutations.NPZ, *mutations.NPZ)
    kind, weight = 'classifier', 5

    def make(self, folder):
        copy_corpus(folder)
        (folder / 'run').mkdir()
        shutil.copy(OLD / self.kind / 'snapshot.npz', folder / 'run')

    def damage(self, random, folder):
        if random.random() < 0.4:
            return self._change_number(random, folder / self.name)
        found = super().damage(random, folder)
        path = folder / self.name
        if found and path.is_file() and not path.is_symlink():
            with contextlib.suppress(Exception):  # a run may be resumed with other extensions
                now, before = map(checkpoints.read_arrays, (
                    path, OLD / self.kind / 'snapshot.npz'))
                if now.keys() != before.keys() and all(
                        name.startswith('trainer/extension_triggers/')
                        for name in now.keys() ^ before.keys()):
                    return None
                # The sums of the log may have any value.
                if now.keys() == before.keys() and all(
                        '/_summaries/' in name and not now[name].shape
                        and now[name].dtype.kind == 'f' and np.isfinite(now[name])
                        for name in now if not np.array_equal(now[name], before[name])):
                    return None
        return found

    def _change_number(self, random, path):
        """Counts, positions and orders that no run could be at."""
        arrays = dict(np.load(path))
        numbers = [name for name, array in arrays.items() if array.dtype.kind in 'iu'
                   and not name.startswith(('trainer/extension', 'random/keys'))
                   and not name.endswith('n_words')]
        name = random.choice(sorted(numbers))
        array = arrays[name].astype(np.int64)
        values = [-5, -1, 625, 700, 2 ** 31 - 1, 2 ** 62, -2 ** 63]
        array.reshape(-1)[random.randrange(max(array.size, 1)):][:1] = random.choice(values)
        if not array.size:
            return None
        arrays[name] = array.astype(arrays[name].dtype) if array.ndim else array
        if np.array_equal(arrays[name], np.load(path)[name]):
            return None
        np.savez(path, **arrays)
        return True

    def read(self, folder):
        main, _ = test_old_runs.RUNS[self.kind]
        with contextlib.redirect_stdout(io.StringIO()):
            main(['--data_dir', str(folder / 'data'), '--out', str(folder / 'run'), '--resume',
                  '--n_epoch' if self.kind == 'classifier' else '--epoch', '1',
                  *FLAGS[self.kind][2:]])
        found = json.loads((folder / 'run' / 'result.json').read_text())
        assert found['digest'] == self.expected()

    def expected(self):
        """The digest after one epoch: the part of the run that the snapshot had not seen yet."""
        return DIGESTS[self.kind]


class SnapshotOfLanguageModel(Snapshot):
    kind, weight = 'language_model', 2


DIGESTS = {}  # kind: of the undamaged snapshot, filled by `prepare`


class Cache(OfOneFile):
    """A damaged cache is rebuilt."""

    mutations = (*mutations.BYTES, *mutations.NPZ)
    must = False
    name = 'data/ids_lower1_min2_ignore0_unlabeled1.cache'

    def make(self, folder):
        copy_corpus(folder)

    def damage(self, random, folder):
        """A cache that somebody made, with all checksums right, may hold another corpus."""
        before = random.getstate()
        self.forged = random.random() >= 0.03 and random.choice(
            self.mutations) is mutations.npz_array
        random.setstate(before)
        super().damage(random, folder)

    def read(self, folder):
        corpus = data.load(folder / 'data', lower=True, min_count=2, ignore_unk=False)
        check_corpus(corpus)
        assert self.forged or data.statistics(corpus) == DIGESTS['corpus']


# Text files -----------------------------------------------------------------------------------

class Vocabulary(OfOneFile):
    name = 'vocab.txt'
    mutations = (*mutations.BYTES, mutations.windows_line_ends)
    words = ['<eos>', '<unk>', *(f'w{i}' for i in range(40)), 'é']

    def make(self, folder):
        checkpoints.save_vocabulary(folder / self.name, self.words)

    def read(self, folder):
        checkpoints.check_vocabulary(folder / 'best.model', len(self.words), self.words)
        path = folder / self.name
        if path.exists():  # without one, only the number of words is known
            assert path.read_bytes() == '\n'.join([*self.words, '']).encode()
            assert data.read_vocabulary(path) == self.words


class UpstreamCorpus(OfOneFile):
    weight = 6

    def make(self, folder):
        copy_corpus(folder)

    def damage(self, random, folder):
        self.name = 'data/' + random.choice(['imdb_pos_train.txt', 'imdb_unlabled.txt'])
        return super().damage(random, folder)

    def read(self, folder):
        check_corpus(data.load(folder / 'data'))


def check_corpus(corpus):
    assert len(set(corpus.words)) == corpus.n_vocab and corpus.words[:2] == ['<eos>', '<unk>']
    for split in (corpus.train, corpus.dev, corpus.test):
        assert len(split.sequences) == len(split.labels)
        assert set(np.unique(split.labels)) <= set(range(corpus.n_class))
        flat = split.sequences.flat
        assert not len(flat) or 0 <= flat.min() <= flat.max() < corpus.n_vocab and flat[-1] == 0
    data.statistics(corpus)


class OwnCorpus(OfOneFile):
    def make(self, folder):
        with contextlib.redirect_stdout(io.StringIO()):
            lines = [f'{{"text": "word{i % 7} film {i % 3}", "label": "{"abc"[i % 3]}"}}'
                     for i in range(30)]
            (folder / 'texts.jsonl').write_text('\n'.join(lines))
            custom.prepare(str(folder / 'data'), str(folder / 'texts.jsonl'))

    def damage(self, random, folder):
        self.name = 'data/' + random.choice([
            'corpus.json', 'corpus.json', 'corpus_train.txt', 'corpus_train_labels.txt'])
        self.mutations = ((mutations.json_value,) if self.name.endswith('.json')
                          and random.random() < 0.8 else mutations.BYTES)
        return super().damage(random, folder)

    def read(self, folder):
        corpus = data.load(folder / 'data')
        check_corpus(corpus)
        assert len(corpus.label_names) > 1 and all(isinstance(n, str) for n in corpus.label_names)


class Texts(OfOneFile):
    """CSV, TSV and JSON lines."""

    def make(self, folder):
        rows = [(f'A film, "number" {i}', 'ab'[i % 2]) for i in range(12)]
        (folder / 't.csv').write_text('label,text\n' + ''.join(
            '{},"{}"\n'.format(label, text.replace('"', '""')) for text, label in rows))
        (folder / 't.tsv').write_text('text\tlabel\n' + ''.join(
            f'{text}\t{label}\n' for text, label in rows))
        (folder / 't.jsonl').write_text('\n'.join(
            json.dumps({'text': text, 'label': label}) for text, label in rows))

    def damage(self, random, folder):
        self.name = random.choice(['t.csv', 't.tsv', 't.jsonl'])
        if self.name == 't.csv' and random.random() < 0.05:
            path = folder / self.name
            path.write_text(path.read_text().replace('label,text', random.choice(
                ['label,text,text', 'text,text', 'label,text,label', ' text , text ', 'x,y', ''])))
            return True
        self.mutations = ((mutations.json_value,) if self.name.endswith('l') else mutations.BYTES)
        return super().damage(random, folder)

    def read(self, folder):
        with contextlib.redirect_stdout(io.StringIO()):
            rows = custom.read(str(folder / self.name))
        assert rows
        for row in rows:
            assert row.text and row.label and isinstance(row.label, str)
            (row.text + row.label).encode()
        if len({row.label for row in rows}) > 1:
            with contextlib.redirect_stdout(io.StringIO()):
                custom.prepare(str(folder / 'out'), str(folder / self.name), dev_share=0.5)
            check_corpus(data.load(folder / 'out', min_count=0))


class Steps(OfOneFile):
    name = 'steps.jsonl'
    mutations = (*mutations.BYTES, mutations.json_value)

    def make(self, folder):
        (folder / self.name).write_text(''.join(
            f'{{"step": {n}, "loss": {1 / n}}}\n' for n in range(1, 30)))

    def read(self, folder):
        kept = list(extensions._lines_up_to(folder / self.name, 'step', 20))
        assert all(json.loads(line)['step'] <= 20 for line in kept)


# JSON -----------------------------------------------------------------------------------------

class Settings(OfOneFile):
    """`args.json` beside a model."""

    name = 'args.json'
    mutations = (mutations.json_value,) * 6 + mutations.BYTES[:3]
    weight = 14

    def make(self, folder):
        flags = vars(train.parse(['--preset', 'paper', '--method', 'spgd']))
        (folder / self.name).write_text(json.dumps({**flags, 'vocab_sha256': 'v'}))

    def read(self, folder):
        model = str(folder / 'best.model')
        flags = evaluate.parse(['--model', model])
        assert flags.lower in (0, 1) and flags.ignore_unk in (0, 1) and flags.min_count >= 0
        attack = settings.resolve_attacks(
            analysis.make_parser, ['--model', model], {'spgd': model, 'adv': model}, {}, 1)
        for found in attack.values():
            assert 0 <= found.epsilon < 1e10 and 1 <= found.k and 0 <= found.sparsity <= 1
            assert 1 <= found.iterations <= 10_000 and found.level in ('sentence', 'word')
            assert found.step is None or 0 <= found.step < 1e10


class Records(OfOneFile):
    name = 'records.jsonl'
    mutations = (mutations.json_value,) * 6 + mutations.BYTES[:3]
    weight = 14

    def make(self, folder):
        (folder / self.name).write_text(''.join(
            json.dumps(example_record(index, method, words=3, neighbors=2, label_names=['a', 'b'],
                                      perplexity={'clean': 3.5}, probability=0.5)) + '\n'
            for index in range(2) for method in ('adv', 'spgd')))

    def damage(self, random, folder):
        self.format = random.choice(['html'] * 12 + ['pdf', 'png'])
        return super().damage(random, folder)

    def read(self, folder):
        with contextlib.redirect_stdout(io.StringIO()):
            visualize.main(['--records', str(folder / self.name), '--out', str(folder / 'out'),
                            '--format', self.format])
        written = list((folder / 'out').iterdir())
        assert written and all(path.stat().st_size > 500 for path in written)


class Results(OfOneFile):
    """What tables, figures, `collect` and `check` read."""

    weight = 14

    def make(self, folder):
        runs = folder / 'runs'
        for method in ('adv', 'spgd'):
            finished_runs.write_classifier(runs, method, 1, 90, n_test=20)
        finished_runs.write_lm(runs)
        finished_runs.write_table2(runs)
        finished_runs.write_perplexity(runs)
        finished_runs.write_perplexity(runs, 'perplexity_sweep', sweep=True)
        finished_runs.write_json(runs / 'jobs' / 'adv_seed1.json', {
            'commands': ['python -m x'], 'seconds': 61.4, 'inputs': {}, 'settings': {},
            'finished': '2026-11-16 05:00 UTC'})
        finished_runs.write_json(runs / 'grid_search' / 'grid_search.json', {
            'points': [{'method': 'adv', 'parameter': 'xi_var', 'value': 2.0,
                        'settings': {'xi_var': 2.0}, 'dev_accuracy': [80.0]}],
            'chosen': {'adv': {'xi_var': 2.0}}, 'seeds': [1]})
        collect.collect(str(runs), str(folder / 'data'), str(folder / 'kept'))
        names = sorted(path.relative_to(folder) for path in runs.rglob('*') if path.is_file())
        names += [pathlib.Path('kept/adv_seed1/predictions.csv.gz')]
        (folder / 'names').write_text('\n'.join(map(str, names)))

    def damage(self, random, folder):
        self.name = random.choice((folder / 'names').read_text().split('\n'))
        self.mutations = (mutations.BYTES if '.csv' in self.name or random.random() < 0.15
                          else (mutations.json_value,))
        return super().damage(random, folder)

    def read(self, folder):
        which = folder / self.name.partition('/')[0]
        jobs = [plans.Job('adv_seed1', str(folder / 'runs' / 'adv_seed1'), (), outputs=(
            'result.json',), settings={}, trains='classifier', epochs=30),
            plans.Job('table2', str(folder / 'runs' / 'table2'), (), outputs=('table2.json',))]
        first = None
        for act in (*(lambda make=make: make(str(which)) for make in TABLES),
                    lambda: results.language_model(str(which)),
                    lambda: check.report(str(which), str(folder / 'kept')),
                    lambda: [state.look(job, jobs, str(folder / 'runs' / 'jobs'))
                             for job in jobs],
                    lambda: collect.collect(str(folder / 'runs'), 'data', str(folder / 'again'))):
            try:
                act()
            except UserError as error:
                first = first or error
        if first:
            raise first


class Presets(OfOneFile):
    name = 'my.ini'
    weight = 6

    def make(self, folder):
        shutil.copy(ROOT / 'experiments' / 'presets' / 'toy.ini', folder / self.name)

    def damage(self, random, folder):
        if random.random() < 0.5:
            return super().damage(random, folder)
        path = folder / self.name
        key, value = random.choice([
            ('methods', 'adv nonsense'), ('dataset', '../../x'), ('dataset', 'other'),
            ('seeds', '-1'), ('seeds', 'x'), ('seeds', '1 1'), ('lm_seed', ''), ('results', '../x'),
            ('results', '/tmp'), ('unknown', '1'), ('dataset', '')])
        lines = [line for line in path.read_text().split('\n')
                 if not line.startswith((key + ' ', key + '='))]
        place = lines.index('[plan]')
        path.write_text('\n'.join([*lines[:place + 1], f'{key} = {value}', *lines[place + 1:]]))
        return True

    def read(self, folder):
        preset = presets.load(str(folder / self.name))
        assert preset.methods and preset.seeds and preset.plan('dataset') in ('imdb', 'toy')
        places = plans.Places(str(folder / 'runs'), str(folder / 'data'))
        assert plans.table3(preset, places, preset.seeds[:1])


# IMDB -----------------------------------------------------------------------------------------

REVIEWS = {f'{part}/{number}_5.txt': f'A film {number} of {part}.'
           for part in ('train/pos', 'train/neg', 'train/unsup', 'test/pos', 'test/neg')
           for number in (1, 20000)}


class Folder(Target):
    """An extracted archive."""

    weight = 4

    def make(self, folder):
        for name, text in REVIEWS.items():
            path = folder / 'aclImdb' / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def damage(self, random, folder):
        path = folder / 'aclImdb' / random.choice(sorted(REVIEWS))
        kind = random.randrange(3)
        if kind == 0:
            return mutations.special(random, path)
        if kind == 1:
            path.unlink()
            path.symlink_to(random.choice(['/etc/passwd', '/dev/zero', '/proc/self/status']))
            return True
        return random.choice(mutations.BYTES)(random, path)

    def read(self, folder):
        imdb.prepare(str(folder / 'data'), str(folder / 'aclImdb'))
        check_corpus(data.load(folder / 'data', min_count=0))


class Archive(OfOneFile):
    name = 'aclImdb_v1.tar.gz'
    weight = 4

    def make(self, folder):
        with tarfile.open(folder / self.name, 'w:gz') as tar:
            for name, text in REVIEWS.items():
                info = tarfile.TarInfo(f'aclImdb/{name}')
                info.size = len(text)
                tar.addfile(info, io.BytesIO(text.encode()))

    def read(self, folder):
        imdb.prepare(str(folder / 'data'), str(folder / self.name))
        check_corpus(data.load(folder / 'data', min_count=0))
        assert (folder / 'data' / text_files.UPSTREAM_UNLABELED).read_text().count('\n') == 2


# Outputs in the place of something special ------------------------------------------------------

class Outputs(Target):
    weight = 3

    def make(self, folder):
        (folder / 'out.csv').write_text('')

    def damage(self, random, folder):
        path = folder / 'out.csv'
        mutations.special(random, path)
        self.before = os.lstat(path)
        return None if path.is_symlink() and not path.exists() else True

    def read(self, folder):
        path = folder / 'out.csv'
        try:
            with files.atomic_write(path) as stream:
                stream.write('x')
        finally:
            after = os.lstat(path)
            assert (after.st_mode, after.st_ino) == (self.before.st_mode, self.before.st_ino)


# Kernels --------------------------------------------------------------------------------------

class Kernels(Target):
    """Calls with arguments of wrong shapes, types, ids and positions."""

    weight = 12

    def damage(self, random, folder):
        self.random = random

    def read(self, folder):
        generator = np.random.RandomState(self.random.randrange(2 ** 32))

        def floats(*shape):
            return generator.randn(*shape).astype('f')

        calls = {
            'product': lambda: [floats(3, 4), floats(4, 5)],
            'softmax': lambda: [floats(3, 4), floats(4)],
            'row_sums': lambda: [floats(3, 4)], 'column_sums': lambda: [floats(3, 4)],
            'square_sum': lambda: [floats(3, 4)], 'exp': lambda: [floats(9)],
            'segment_sum': lambda: [[floats(4, 3)], np.arange(4), np.array([0, 1, 4])],
            'dots': lambda: [floats(3, 2, 4), floats(3, 4)],
            'combine': lambda: [floats(3, 2), floats(3, 2, 4)],
            'directions': lambda: [floats(9, 4), np.arange(3), np.arange(6).reshape(3, 2), 1e-6],
            'top_k': lambda: [floats(3, 5), floats(3, 2), np.zeros((3, 2), 'i'),
                              np.arange(3, dtype='i'), 0],
            'adam': lambda: [floats(6, 3), floats(6, 3), floats(6, 3) ** 2, floats(2, 3), 0.1,
                             0.001, 0.01, 1e-8, 1.0, np.array([1, 4]), np.ones(6, np.uint8)],
            'lstm_forward': lambda: [floats(5, 12), floats(12), [floats(3, 3) for _ in range(4)],
                                     floats(3, 3), floats(3, 3), np.array([0, 3, 5])],
            'lstm_backward': lambda: [floats(5, 12), floats(5, 3), floats(5, 3),
                                      [floats(3, 3) for _ in range(4)], floats(3, 3),
                                      floats(5, 3), floats(3, 3), floats(3, 3),
                                      np.array([0, 3, 5])],
            'dropout_mask': lambda: [(3, 4), 0.5]}
        for _ in range(5):
            name = self.random.choice(sorted(calls))
            arguments = calls[name]()
            place = self.random.randrange(len(arguments))
            arguments[place] = self._spoil(arguments[place])
            if name == 'dropout_mask' and self.random.random() < 0.7:
                state = list(np.random.get_state())
                state[2] = self.random.choice([625, 700, 2 ** 31 - 1, -5])
                np.random.set_state(tuple(state))
            with contextlib.suppress(ValueError, IndexError, TypeError, AttributeError,
                                     OverflowError):
                getattr(kernels, name)(*arguments)
            np.random.seed(1)

    def _spoil(self, value):
        choose = self.random.choice
        if isinstance(value, list):
            place = self.random.randrange(len(value))
            return choose([value[:-1], [], [*value[:place], self._spoil(value[place]),
                                            *value[place + 1:]]])
        if not isinstance(value, np.ndarray):
            return choose([-1, 0, 2.5, np.nan, None, 'x', (2 ** 20, -1), (-2 ** 63,)])
        if value.dtype.kind in 'iu' and choose([True, False]) and value.size:
            spoiled = value.copy()
            place = self.random.randrange(value.size)
            spoiled.reshape(-1)[place] = np.int64(
                choose([-1, 9, 2 ** 31 - 1, -2 ** 31])).astype(value.dtype)
            return spoiled
        return choose([
            value[:-1], value[:0], value[..., ::-1], value.T, value[None], value.astype('d'),
            value.astype('>' + value.dtype.str[1:]), np.zeros((), value.dtype), None,
            np.broadcast_to(value, value.shape), value.reshape(-1), value[::2],
            np.frombuffer(b'\0' + value.tobytes(), np.uint8)[1:].view(value.dtype)
            if value.size else value, np.concatenate([value, value])])


TARGETS = {kind.__name__: kind for kind in (
    Classifier, EvaluateCommand, OwnSentences, PredictCommand, Request, LanguageModel, Snapshot,
    SnapshotOfLanguageModel, Cache, Vocabulary, UpstreamCorpus, OwnCorpus, Texts, Steps, Settings,
    Records, Results, Presets, Folder, Archive, Outputs, Kernels)}


def prepare(folder, names):
    """Makes the files of all targets, and checks that undamaged ones are read."""
    for name in names:
        target = TARGETS[name]()
        place = folder / name
        place.mkdir()
        target.make(place)
        if isinstance(target, Snapshot):
            _learn_digest(target, place, folder / 'trial')
        if isinstance(target, Cache):
            DIGESTS['corpus'] = data.statistics(data.load(
                place / 'data', lower=True, min_count=2, ignore_unk=False))


def _learn_digest(target, place, trial):
    shutil.copytree(place, trial)
    DIGESTS[target.kind] = None
    with contextlib.suppress(AssertionError):
        target.read(trial)
    DIGESTS[target.kind] = json.loads((trial / 'run' / 'result.json').read_text())['digest']
    shutil.rmtree(trial)

