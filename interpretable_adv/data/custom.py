"""The user's own labelled texts: CSV, TSV or JSON lines → one review a line and a manifest."""
import collections
import csv
import io
import os
import random

from interpretable_adv.data import text_files, tokens
from interpretable_adv.errors import UserError
from interpretable_adv.runs import reading

SHOWN_MARKS = 8  # dropped characters that are named, the most frequent

Row = collections.namedtuple('Row', 'line text label')


def prepare(data_dir, train, dev=None, test=None, unlabeled=None, text_column='text',
            label_column='label', tokenizer=tokens.DEFAULT, dev_share=0.1, seed=1234):
    """Tokenises a user's files into `data_dir` and prints what was read and dropped.

    Texts without a word and rows without a label are dropped. Classes are the labels of `train`,
    numbers in numerical and other labels in alphabetical order. Without `dev`, the share
    `dev_share` of each class of `train` is taken for it.

    Returns the number of reviews per file.
    """
    text_files.check_target(data_dir, own=True)
    if not 0 < dev_share < 1:
        raise UserError(f'--dev_share is {dev_share}: it must lie between 0 and 1')
    sources = {'train': train, 'dev': dev, 'test': test}
    print(f'tokenizer {tokenizer}: {tokens.DESCRIPTIONS[tokenizer]}')
    splits = {split: read(path, text_column, label_column, tokenizer)
              for split, path in sources.items() if path is not None}
    names = _sorted_labels({row.label for row in splits['train']})
    if len(names) < 2:
        raise UserError(f'{train}: all texts have the label {names[0]!r}; there must be two '
                        'classes or more')
    if dev is None:
        splits['train'], splits['dev'] = _split(splits['train'], dev_share, seed)
        if not splits['dev']:
            raise UserError(f'{train} has too few texts to take a dev set from: give one with '
                            '--dev, or a larger --dev_share')
    number = {name: index for index, name in enumerate(names)}
    output = {}
    for split in ('train', 'dev', 'test'):
        for row in splits.get(split, ()):
            if row.label not in number:
                raise UserError(f'{sources[split]}, line {row.line}: the label {row.label!r} does '
                                'not occur in the training data; add training texts or drop it')
        if split in splits:
            output[split] = ([row.text for row in splits[split]],
                             [number[row.label] for row in splits[split]])
    if unlabeled is not None:
        rows = read(unlabeled, text_column, None, tokenizer)
        output['unlabeled'] = [row.text for row in rows], None
    text_files.write_own(data_dir, names, output, tokenizer)
    for name in names:
        count = sum(row.label == name for row in splits['train'])
        print(f'class {number[name]}: {name!r}, {count:,} training texts')
    return {f'corpus_{split}.txt': len(reviews) for split, (reviews, _) in output.items()}


def _sorted_labels(labels):
    try:
        return sorted(labels, key=lambda label: (int(label), label))
    except ValueError:
        return sorted(labels)


def _split(rows, share, seed):
    """Draws `share` of each class, but never all of it; both parts keep their order."""
    by_label = collections.defaultdict(list)
    for index, row in enumerate(rows):
        by_label[row.label].append(index)
    draw, chosen = random.Random(seed).random, set()
    for label in sorted(by_label):
        indices = sorted((draw(), index) for index in by_label[label])
        count = min(round(share * len(indices)), len(indices) - 1)
        chosen.update(index for _, index in indices[:count])
    return ([row for index, row in enumerate(rows) if index not in chosen],
            [row for index, row in enumerate(rows) if index in chosen])


def read(path, text_column='text', label_column='label', tokenizer=tokens.DEFAULT):
    """Returns the usable rows of a file, texts tokenised; `label_column` None: there is none."""
    kept, read, wordless, unlabeled, marks = [], 0, 0, 0, collections.Counter()
    for row in read_rows(path, text_column, label_column):
        read += 1
        words = tokens.tokenize(row.text, tokenizer)
        if not words:
            wordless += 1
        elif row.label == '':
            unlabeled += 1
        else:
            kept.append(row._replace(text=' '.join(words)))
        marks.update(tokens.dropped(row.text, tokenizer))
    print(f'{path}: {read:,} texts read, {wordless:,} without a word and {unlabeled:,} without a '
          f'label dropped; {_describe_marks(marks)}')
    if not kept:
        raise UserError(f'{path} contains no usable text; check its text and label columns')
    return kept


def _describe_marks(marks):
    """How many characters the tokenizer dropped, and which most often."""
    if not marks:
        return 'no character but white space dropped'
    most = ' '.join(mark if mark.isprintable() else ascii(mark)[1:-1]
                    for mark, _ in marks.most_common(SHOWN_MARKS))
    return (f'{marks.total():,} characters between words dropped besides white space, most often '
            f'{most}')


def read_rows(path, text_column='text', label_column='label', needs_label=True):
    """Yields the rows of a file as they are, in its format by the ending of its name.

    Args:
        label_column: None: there are no labels, and a .txt file has one text a line.
        needs_label: False: labels may be missing, of single rows or of all, and are '' then.
    """
    ending = os.path.splitext(path)[1].lower()
    text = reading.decode(reading.read_bytes(path), path).removeprefix('\ufeff')
    if ending in ('.csv', '.tsv'):
        return _read_table(path, text, ending, text_column, label_column, needs_label)
    if ending in ('.jsonl', '.ndjson', '.json'):
        return _read_json_lines(path, text, text_column, label_column, needs_label)
    if ending == '.txt' and (label_column is None or not needs_label):
        label = None if label_column is None else ''
        return [Row(number, line, label) for number, line in enumerate(text.split('\n'), 1)
                if line.strip()]
    raise UserError(f'{path}: the name must end in .csv, .tsv or .jsonl'
                    + ('' if label_column and needs_label else ', or .txt'))


def _read_table(path, text, ending, text_column, label_column, needs_label):
    """Yields the rows of a CSV or TSV file with a header line.

    In a TSV file a quotation mark is a character like any other, and a line is a row.
    """
    csv.field_size_limit(1 << 27)
    options = {'delimiter': '\t', 'quoting': csv.QUOTE_NONE} if ending == '.tsv' else {}
    reader = csv.reader(io.StringIO(text, newline=''), strict=True, **options)
    try:
        header = [name.strip() for name in next(reader, [])]
        given = label_column
        if label_column not in header and not needs_label:
            label_column = None
        wanted = [text_column] if label_column is None else [text_column, label_column]
        for name in wanted:
            if name not in header:
                flag = '--text_column' if name == text_column else '--label_column'
                raise UserError(f'{path} has no column {name!r} but {", ".join(header) or "none"}: '
                                f'name the right one with {flag}')
            if header.count(name) > 1:
                raise UserError(f'{path} has the column {name!r} {header.count(name)} times: '
                                'rename all but one')
        columns = [header.index(name) for name in wanted]
        for cells in reader:
            if not cells:
                continue
            if len(cells) != len(header):
                raise UserError(f'{path}, line {reader.line_num}: {len(cells)} columns where the '
                                f'header has {len(header)}; quote the text or repair the line')
            label = cells[columns[1]].strip() if label_column else '' if given else None
            yield Row(reader.line_num, cells[columns[0]], label)
    except csv.Error as error:
        raise UserError(f'{path}, line {reader.line_num}: {error}; repair the line') from error


def _read_json_lines(path, text, text_column, label_column, needs_label):
    """Yields the rows of a file with one JSON object a line."""
    for number, line in enumerate(text.split('\n'), 1):
        if not line.strip():
            continue
        try:
            entry = reading.parse_json(line)
        except ValueError as error:
            raise UserError(f'{path}, line {number}: not JSON ({error}); each line must be one '
                            'object') from error
        if not isinstance(entry, dict) or not isinstance(entry.get(text_column), str):
            raise UserError(f'{path}, line {number}: no text under {text_column!r}; name the right '
                            'key with --text_column')
        label = None
        if label_column is not None:
            if label_column not in entry and needs_label:
                raise UserError(f'{path}, line {number}: no {label_column!r}; name the right key '
                                'with --label_column')
            label = entry.get(label_column)
            if not isinstance(label, str | int | type(None)):
                raise UserError(f'{path}, line {number}: the label must be a string or a whole '
                                'number')
            label = '' if label is None else str(label).strip()
        yield Row(number, entry[text_column], label)
