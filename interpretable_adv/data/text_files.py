"""Prepared corpora on disk: one review a line, its words separated by single spaces.

Two layouts share that format. Upstream's has one file per split and sentiment under fixed
names (`UPSTREAM_FILES`, `UPSTREAM_UNLABELED`). Any other corpus has a manifest, `corpus.json`,
that names its classes and, per split, a file of reviews and a file with the class of each.
"""
import contextlib
import io
import json
import os
import shutil

from interpretable_adv.data import tokens
from interpretable_adv.errors import UserError
from interpretable_adv.runs import files, reading

# Positive before negative: this order numbers the vocabulary and fixes the order of examples.
UPSTREAM_FILES = {
    split: [(f'imdb_pos_{split}.txt', 1), (f'imdb_neg_{split}.txt', 0)]
    for split in ('train', 'dev', 'test')}
UPSTREAM_UNLABELED = 'imdb_unlabled.txt'  # upstream's spelling
UPSTREAM_LABELS = ['negative', 'positive']
MANIFEST = 'corpus.json'
# What a run's args.json says of its corpus, besides the flags it was read with.
DESCRIPTION = ('label_names', 'tokenizer', 'train_vocab_size')
PREPARE_AGAIN = 'prepare the corpus again'
OWN_FILES = ('corpus_train.txt', 'corpus_train_labels.txt', 'corpus_dev.txt',
             'corpus_dev_labels.txt', 'corpus_test.txt', 'corpus_test_labels.txt',
             'corpus_unlabeled.txt')
STAGING = '.prepare'  # folder of files that are being written
INCOMPLETE = '.prepare.incomplete'  # marks a folder whose files are being replaced


class TextFile:
    """One file of reviews and their classes, held as bytes so that it can be hashed and read."""

    def __init__(self, path, labels=None):
        self.path = path
        self.content = reading.read_bytes(path, PREPARE_AGAIN)
        self.labels = labels  # one class for all reviews, a list with one for each, or None

    def reviews(self, lower=False):
        """Yields the words of each review, as upstream splits them."""
        for number, line in enumerate(io.BytesIO(self.content), 1):
            try:
                line = line.decode('utf-8').strip()
            except UnicodeDecodeError as error:
                raise reading.not_utf8(self.path, number) from error
            if not line:
                raise UserError(f'{self.path}, line {number}: empty review; delete the line or '
                                'prepare the corpus again')
            yield (line.lower() if lower else line).split(' ')


def open_corpus(directory, use_unlabeled=True):
    """Finds the prepared files in `directory`.

    Returns the class names and a dict `split: [TextFile, …]` for train, dev, test and unlabeled.
    """
    if not os.path.isdir(directory):
        raise UserError(f'no data folder {directory}: make one with '
                        '`python -m interpretable_adv.data prepare`')
    manifest = os.path.join(directory, MANIFEST)
    _refuse_incomplete(directory)
    found = (_open_own(directory, manifest, use_unlabeled) if os.path.exists(manifest)
             else _open_upstream(directory, use_unlabeled))
    _refuse_incomplete(directory)  # files may have been replaced while we read
    return found


def is_incomplete(directory):
    """Whether a running or a killed `prepare` has begun to replace the files of a folder."""
    return os.path.lexists(os.path.join(directory, INCOMPLETE))


def _refuse_incomplete(directory):
    if is_incomplete(directory):
        raise UserError(f'{directory} is incomplete, because preparing it was interrupted or has '
                        'not ended yet: run the same `prepare` command again')


def describe(directory):
    """What a text needs to be read as this corpus was: what every run stores of its corpus.

    Returns the names of the classes and of the tokenizer, as `DESCRIPTION` calls them.
    """
    manifest = os.path.join(directory, MANIFEST)
    if not os.path.exists(manifest):
        return {'label_names': UPSTREAM_LABELS, 'tokenizer': tokens.DEFAULT}
    found = reading.read_json(manifest, _check_manifest, PREPARE_AGAIN)
    return {'label_names': found['labels'], 'tokenizer': found.get('tokenizer', tokens.DEFAULT)}


def _open_upstream(directory, use_unlabeled):
    names = [name for pairs in UPSTREAM_FILES.values() for name, _ in pairs]
    names += [UPSTREAM_UNLABELED] if use_unlabeled else []
    missing = [name for name in names if not os.path.exists(os.path.join(directory, name))]
    if missing:
        raise UserError(f'{directory} lacks {", ".join(missing)}: make the files with '
                        '`python -m interpretable_adv.data prepare`')
    splits = {split: [TextFile(os.path.join(directory, name), label) for name, label in pairs]
              for split, pairs in UPSTREAM_FILES.items()}
    splits['unlabeled'] = (
        [TextFile(os.path.join(directory, UPSTREAM_UNLABELED))] if use_unlabeled else [])
    return UPSTREAM_LABELS, splits


def _open_own(directory, manifest, use_unlabeled):
    description = reading.read_json(manifest, _check_manifest, PREPARE_AGAIN)
    label_names, entries = description['labels'], description['splits']
    splits = {'train': [], 'dev': [], 'test': [], 'unlabeled': []}
    for split, entry in entries.items():
        path = os.path.join(directory, entry['reviews'])
        if split != 'unlabeled':
            labels = _read_labels(os.path.join(directory, entry['labels']), len(label_names))
            splits[split] = [TextFile(path, labels)]
        elif use_unlabeled:
            splits[split] = [TextFile(path)]
    return label_names, splits


_FILE_OF_REVIEWS = {'reviews': reading.text}
_LABELLED = reading.fields({**_FILE_OF_REVIEWS, 'labels': reading.text})
_MANIFEST_FORM = reading.fields({
    'labels': reading.items(reading.text, least=2),
    'splits': reading.fields({'train': _LABELLED, 'dev': _LABELLED}, {
        'test': _LABELLED, 'unlabeled': reading.fields(_FILE_OF_REVIEWS)})})


def _check_manifest(description, name):
    """The form of `corpus.json`."""
    _MANIFEST_FORM(description, name)
    labels, entries = description['labels'], description['splits']
    if len(set(labels)) != len(labels):
        raise ValueError('a label occurs twice')
    unknown = set(entries) - {'train', 'dev', 'test', 'unlabeled'}
    if description.get('format', 1) != 1 or unknown:
        raise ValueError('it is of an unknown format')
    tokenizer = description.get('tokenizer', tokens.DEFAULT)
    if tokenizer not in list(tokens.TOKENIZERS):
        raise ValueError(f'the tokenizer {reading.shown(tokenizer)} is none of '
                         f'{", ".join(tokens.TOKENIZERS)}')
    named = [entry[kind] for entry in entries.values() for kind in ('reviews', 'labels')
             if kind in entry]
    for file in named:
        if os.path.basename(file) != file or not 0 < len(file) < 256:
            raise ValueError(f'the file {reading.shown(file)} is outside the folder')
    if len(set(named)) != len(named):
        raise ValueError('it names a file twice')


def _read_labels(path, n_class):
    lines = reading.decode(reading.read_bytes(path, PREPARE_AGAIN), path).splitlines()
    known = {str(label): label for label in range(n_class)}
    for number, line in enumerate(lines, 1):
        if line not in known:
            raise UserError(f'{path}, line {number}: {reading.shown(line)} is none of the '
                            f'{n_class} classes in {MANIFEST}; {PREPARE_AGAIN}')
    return [known[line] for line in lines]


def is_read_only(directory):
    """Whether the folder is write-protected; the superuser could write there, but must not."""
    return not os.stat(directory).st_mode & 0o222 or not os.access(directory, os.W_OK)


def check_target(directory, own=False):
    """Refuses a folder that a corpus (`own`: one with a manifest) cannot be written to."""
    existing = os.path.abspath(directory)
    while not os.path.lexists(existing):
        existing = os.path.dirname(existing)
    if not os.path.isdir(existing):
        raise UserError(f'cannot write to {directory}: {existing} is not a folder')
    if is_read_only(existing):
        raise UserError(f'cannot write to {directory}: {existing} is read-only')
    other = UPSTREAM_UNLABELED if own else MANIFEST
    if os.path.exists(os.path.join(directory, other)):
        raise UserError(f'{directory} holds another corpus ({other}): choose another --data_dir')


def write_upstream(directory, reviews):
    """Writes upstream's seven files, all or none.

    Args:
        reviews (dict): File name → iterable of reviews, each its words joined by single spaces.
    """
    check_target(directory)
    with _all_or_none(directory) as folder:
        for name, lines in reviews.items():
            _write_lines(os.path.join(folder, name), lines)


def write_own(directory, label_names, splits, tokenizer=tokens.DEFAULT):
    """Writes a corpus with any number of classes and its manifest, all or none.

    Args:
        splits (dict): Split → (list of reviews, list of classes); no classes for `unlabeled`.
    """
    check_target(directory, own=True)
    manifest = {'format': 1, 'labels': label_names, 'tokenizer': tokenizer, 'splits': {}}
    with _all_or_none(directory) as folder:
        for split, (reviews, labels) in splits.items():
            entry = {'examples': len(reviews), 'reviews': f'corpus_{split}.txt'}
            _write_lines(os.path.join(folder, entry['reviews']), reviews)
            if split != 'unlabeled':
                entry['labels'] = f'corpus_{split}_labels.txt'
                _write_lines(os.path.join(folder, entry['labels']), map(str, labels))
            manifest['splits'][split] = entry
        text = json.dumps(manifest, indent=1, ensure_ascii=False)
        _write_lines(os.path.join(folder, MANIFEST), [text])


def _write_lines(path, lines):
    with open(path, 'w', encoding='utf-8', newline='\n') as stream:
        for line in lines:
            stream.write(line)
            stream.write('\n')
        stream.flush()
        os.fsync(stream.fileno())


@contextlib.contextmanager
def _all_or_none(directory):
    """Yields a folder whose files replace those of `directory` when the block succeeds.

    When the block fails, `directory` is as it was. While files are replaced, the marker
    `INCOMPLETE` is there, and `open_corpus` refuses the folder; a process that is killed then
    leaves it, until the corpus is prepared again.
    """
    staging = os.path.join(directory, STAGING)
    try:
        with files.locked(directory, '--data_dir'):
            shutil.rmtree(staging, ignore_errors=True)  # of a process that was killed
            os.mkdir(staging)
            try:
                yield staging
                _publish(staging, directory)
            finally:
                shutil.rmtree(staging, ignore_errors=True)
    except OSError as error:
        raise UserError(f'cannot write to {directory}: {error.strerror or error}') from error


def _publish(staging, directory):
    """Moves the files of `staging` into `directory`, in place of the corpus that is there."""
    names = sorted(os.listdir(staging))
    for name in names:
        if os.path.isdir(os.path.join(directory, name)):
            raise OSError(None, f'{name} is a folder')
    marker = os.path.join(directory, INCOMPLETE)
    with files.atomic_write(marker) as stream:
        stream.write('Files of two corpora may be mixed here: prepare the corpus again.\n')
    if os.path.exists(os.path.join(directory, MANIFEST)):  # an own corpus with other splits
        for name in set(OWN_FILES) - set(names):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(os.path.join(directory, name))
    for name in names:
        os.replace(os.path.join(staging, name), os.path.join(directory, name))
    os.rmdir(staging)
    files.sync_directory(directory)
    os.unlink(marker)
    files.sync_directory(directory)
