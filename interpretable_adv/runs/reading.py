"""Reading what others may have damaged: regular files, UTF-8, and JSON of a known form.

Every reader of the project takes its bytes, its text and its JSON from here. What cannot be read is
a `UserError` that names the file and a remedy.
"""
import json
import math
import os
import re
import stat

from interpretable_adv.errors import UserError

DEEPEST = 100  # levels of nested JSON; our own files have six
_KINDS = {stat.S_IFDIR: 'a folder', stat.S_IFIFO: 'a pipe', stat.S_IFCHR: 'a device',
          stat.S_IFBLK: 'a device', stat.S_IFSOCK: 'a socket', stat.S_IFLNK: 'a link'}
_HALF_PAIR = re.compile(r'\\u[dD][89a-fA-F]')


class MissingFileError(UserError):
    """There is no such file."""


# Files --------------------------------------------------------------------------------------

def kind_of_special(mode):
    """What a file of this mode is, or None for a regular one."""
    return None if stat.S_ISREG(mode) else _KINDS.get(stat.S_IFMT(mode), 'no regular file')


def open_regular(path, advice='check the path', follow=True):
    """Opens a regular file to read its bytes.

    Anything else is refused before it is opened: a pipe can make the reader wait for ever, and a
    device need not end.

    Args:
        advice: the remedy in the message of an error.
        follow: whether `path` may be a link.
    """
    try:
        special = kind_of_special(os.stat(path, follow_symlinks=follow).st_mode)
        if special:
            raise UserError(f'cannot read {path}: it is {special}; {advice}')
        return open(path, 'rb')
    except FileNotFoundError:
        raise MissingFileError(f'cannot read {path}: no such file; {advice}') from None
    except OSError as error:
        raise UserError(f'cannot read {path}: {error.strerror}; {advice}') from error
    except ValueError as error:  # a name that no file can have
        raise UserError(f'cannot read {os.fspath(path)!r}: {error}; {advice}') from None


def read_bytes(path, advice='check the path', follow=True, limit=None):
    """The content of a regular file of at most `limit` bytes."""
    with open_regular(path, advice, follow) as stream:
        try:
            size = os.fstat(stream.fileno()).st_size
            if limit is not None and size > limit:
                raise UserError(f'cannot read {path}: it has {size:,} bytes where {limit:,} is '
                                f'plenty; {advice}')
            return stream.read()
        except OSError as error:
            raise UserError(f'cannot read {path}: {error.strerror}; {advice}') from error
        except MemoryError as error:
            raise UserError(f'cannot read {path}: its {size:,} bytes do not fit into memory; '
                            f'{advice}') from error


def decode(content, path):
    """UTF-8 bytes to text; the error names file and line."""
    try:
        return content.decode('utf-8')
    except UnicodeDecodeError as error:
        raise not_utf8(path, content.count(b'\n', 0, error.start) + 1) from error


def not_utf8(path, line):
    return UserError(f'{path}, line {line}: not UTF-8; convert the file to UTF-8')


# JSON ---------------------------------------------------------------------------------------

def parse_json(text):
    """The value of a JSON text; ValueError for anything that our own writers never write.

    That is: keys that occur twice, whole numbers beyond 64 bits, halves of surrogate pairs (which
    no UTF-8 file can hold), and nesting deeper than `DEEPEST`.
    """
    try:
        value = json.loads(text, object_pairs_hook=_unique, parse_int=_whole)
    except RecursionError:
        raise ValueError('it is nested too deeply') from None
    level = [value]
    for _ in range(DEEPEST):
        level = [item for parent in level if isinstance(parent, dict | list)
                 for item in (parent.values() if isinstance(parent, dict) else parent)]
        if not level:
            break
    else:
        raise ValueError('it is nested too deeply')
    if _HALF_PAIR.search(text):
        try:
            json.dumps(value, ensure_ascii=False).encode('utf-8')
        except UnicodeEncodeError:
            raise ValueError('it holds half of a surrogate pair') from None
    return value


def _unique(pairs):
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError('a key occurs twice in an object')
    return found


def _whole(digits):
    if len(digits) > 20 or not -2 ** 63 <= int(digits) < 2 ** 63:
        raise ValueError(f'{digits[:20]}… is too large a number')
    return int(digits)


def read_json(path, form, advice):
    """The value in a JSON file, checked.

    Args:
        form: one of the forms below.
        advice: the remedy in the message of an error.
    """
    content = read_bytes(path, advice)
    try:
        value = parse_json(content.decode('utf-8'))
        form(value, 'it')
    except ValueError as error:
        raise UserError(f'{path} is damaged ({brief(error)}); {advice}') from error
    return value


# Forms: functions of a value and its name in messages, which raise ValueError ---------------

def anything(value, name):
    pass


def text(value, name):
    if not isinstance(value, str):
        raise ValueError(f'{name} is {shown(value)}, not text')


def number(value, name):
    """A finite number."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
        raise ValueError(f'{name} is {shown(value)}, not a finite number')


def real(value, name):
    """A number that may have overflowed, such as the perplexity of a bad model."""
    if not isinstance(value, int | float) or isinstance(value, bool) or value != value:
        raise ValueError(f'{name} is {shown(value)}, not a number')


def whole(value, name):
    """A whole number from 0."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError(f'{name} is {shown(value)}, not a whole number from 0')


def optional(form):
    """None, or of a form."""
    def check(value, name):
        if value is not None:
            form(value, name)
    return check


def items(form, least=0, most=None):
    """A list."""
    def check(value, name):
        if not isinstance(value, list):
            raise ValueError(f'{name} is {shown(value)}, not a list')
        if len(value) < least:
            raise ValueError(f'{name} has {len(value)} entries, not {least} or more')
        if most is not None and len(value) > most:
            raise ValueError(f'{name} has {len(value)} entries, more than {most}')
        for position, item in enumerate(value):
            form(item, f'{name}[{position}]')
    return check


def mapping(form=anything):
    """An object with any keys."""
    def check(value, name):
        if not isinstance(value, dict):
            raise ValueError(f'{name} is {shown(value)}, not an object')
        for key, item in value.items():
            form(item, f'{name} {shown(key)}')
    return check


def fields(required, known=()):
    """An object with these keys, of these forms; it may have others.

    Args:
        required: forms by key.
        known: forms of keys that may be absent.
    """
    def check(value, name):
        mapping()(value, name)
        for key, form in required.items():
            if key not in value:
                raise ValueError(f'{name} lacks {key}')
            form(value[key], key)
        for key, form in dict(known).items():
            if key in value:
                form(value[key], key)
    return check


def shown(value):
    """A value as messages show it, cut to a bearable length."""
    try:
        described = repr(value)
    except RecursionError:
        described = type(value).__name__
    return described if len(described) <= 40 else described[:37] + '…'


def brief(error):
    """What an exception says, cut to a bearable length: damaged files hold long names."""
    message = str(error)
    return message if len(message) <= 200 else message[:200] + '…'
