"""What all commands share: one-line errors with exit status 2, and ways to check flags."""
import argparse
import contextlib
import difflib
import errno
import os
import platform
import shlex
import sys
import tempfile
import traceback
import warnings

from interpretable_adv import __version__
from interpretable_adv.errors import UserError

# No flag means anything beyond these. float32 can hold the square of the second.
LARGEST = {int: 2**31 - 1, float: 1e9}
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


class HelpFormatter(argparse.ArgumentDefaultsHelpFormatter):
    """Shows the defaults that say something."""

    def _get_help_string(self, action):
        silent = action.default is None or action.default is False or action.default in ('', [])
        if silent or '(default' in (action.help or ''):
            return action.help
        return super()._get_help_string(action)


class ArgumentParser(argparse.ArgumentParser):
    """Reports a wrong flag in one line, and keeps upstream's abbreviations.

    argparse accepts any unambiguous beginning of a flag's name. A flag of ours never makes
    ambiguous what upstream's users may type: flags that were added by `add_upstream_group` win.
    """

    def __init__(self, **kwargs):
        kwargs.setdefault('formatter_class', HelpFormatter)
        kwargs.setdefault('usage', '%(prog)s [flags]')
        script = os.path.basename(sys.argv[0])
        if script.startswith('spgd-'):  # instead of python -m interpretable_adv.train
            module = ' '.join(kwargs.get('prog', '').split()[:3])
            for name in {'prog', 'description'} & set(kwargs):
                kwargs[name] = (kwargs[name] or '').replace(module, script)
        super().__init__(**kwargs)
        self._upstream_groups = []

    def add_upstream_group(self, title):
        """A group of arguments whose abbreviations come first."""
        self._upstream_groups.append(self.add_argument_group(title))
        return self._upstream_groups[-1]

    def _get_option_tuples(self, option_string):
        matches = super()._get_option_tuples(option_string)
        upstream = {id(action) for group in self._upstream_groups
                    for action in group._group_actions}
        return [match for match in matches if id(match[0]) in upstream] or matches

    def parse_known_args(self, args=None, namespace=None):
        for text in sys.argv[1:] if args is None else args:
            try:
                text.encode()
            except UnicodeEncodeError:
                self.error(f'{text!r} is not UTF-8: rename it')
        return super().parse_known_args(args, namespace)

    def error(self, message):
        unknown = message.removeprefix('unrecognized arguments: ').split()[:1]
        if unknown and message.startswith('unrecognized arguments: -'):
            meant = difflib.get_close_matches(unknown[0].partition('=')[0], self._flags(), 1)
            message += f'; did you mean {meant[0]}?' if meant else ''
        raise UserError(f'{message} (see {self.prog} --help)')

    def _flags(self):
        """The names of all flags, also of subcommands."""
        parsers = [self, *(parser for action in self._actions
                           if isinstance(action, argparse._SubParsersAction)
                           for parser in action.choices.values())]
        return [name for parser in parsers for action in parser._actions
                if action.help != argparse.SUPPRESS for name in action.option_strings]


def typed(parser, argv):
    """Names of the flags that `argv` gives, whatever their values."""
    for action in parser._actions:
        action.default = argparse.SUPPRESS
    parser._defaults.clear()
    return set(vars(parser.parse_args(argv)))


def at_least(minimum, kind=int, at_most=None):
    """A flag's type: a number between `minimum` and `at_most` (default: `LARGEST`)."""
    at_most = LARGEST[kind] if at_most is None else at_most

    def parse(text):
        value = kind(text)
        if not value >= minimum:
            raise argparse.ArgumentTypeError(f'{text} is less than {minimum}')
        if value > at_most:
            raise argparse.ArgumentTypeError(f'{text} is more than {at_most:,.15g}')
        return value
    parse.__name__ = kind.__name__
    return parse


def share(text):
    """A flag's type: a number between 0 and 1."""
    value = float(text)
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f'{text} is not between 0 and 1')
    return value


share.__name__ = 'float'


def numbers(kind):
    """A flag's type: numbers separated by commas, none negative.

    Args:
        kind: `int`, `float`, or a type that has bounds of its own, such as `share`.
    """
    def parse(text):
        values = [kind(part) for part in text.split(',')]
        if not all(0 <= value <= LARGEST.get(kind, value) for value in values):
            raise ValueError
        return values
    parse.__name__ = 'list of numbers'
    return parse


def parse_names(text, allowed, flag):
    """The comma-separated names of a flag, each checked, each once."""
    names = list(dict.fromkeys(name.strip() for name in text.split(',') if name.strip()))
    for name in names:
        if name not in allowed:
            raise UserError(f'{flag}: {name} is not one of {", ".join(allowed)}')
    if not names:
        raise UserError(f'{flag} is empty: give any of {", ".join(allowed)}')
    return names


def run(main, argv=None):
    """Runs a command's `main(argv)`; a `UserError` becomes one line and exit status 2.

    Any other exception is a defect of ours: one line that names a file with the traceback, and
    exit status 1.

    Warnings of libraries do not reach the terminal: what concerns the user, such as a loss that
    is not finite, the commands say themselves.
    """
    warnings.simplefilter('ignore')
    for stream in (sys.stdout, sys.stderr):  # a terminal that lacks a sign gets its number
        with contextlib.suppress(AttributeError):
            stream.reconfigure(errors='backslashreplace')
    try:
        _check_directory()
        main(argv)
        sys.stdout.flush()
    except UserError as error:
        print('error:', ' '.join(str(error).split()), file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt as error:
        print('interrupted' + (f'; {error}' if str(error) else ''), file=sys.stderr)
        sys.exit(130)
    except MemoryError as error:
        reason = str(error) or 'an allocation failed'
        print(f'error: not enough memory ({reason}): choose smaller sizes or a smaller batch',
              file=sys.stderr)
        sys.exit(2)
    except BrokenPipeError:  # the reader of our output has gone, e.g. `| head`
        sys.stderr.close()
        sys.exit(141)
    except OSError as error:
        if error.errno not in FULL or error.filename is not None:
            print('error:', ask_for_report(error), file=sys.stderr)
            sys.exit(1)
        _forget_output()
        print(f'error: cannot write the output: {error.strerror}; write it elsewhere, or make room',
              file=sys.stderr)
        sys.exit(2)
    except Exception as error:
        print('error:', ask_for_report(error), file=sys.stderr)
        sys.exit(1)


def ask_for_report(error):
    """Keeps the traceback of an exception in a file; returns the line that asks for a report."""
    reason = ' '.join(str(error).split())
    what = f'unexpected {type(error).__name__}' + (f' ({reason[:100]})' if reason else '')
    lines = [f'{what}\n', f'{shlex.join(sys.argv)}\n', f'{platform.platform()}, Python '
             f'{platform.python_version()}, interpretable_adv {__version__}\n\n',
             *traceback.format_exception(error)]
    try:
        descriptor, path = tempfile.mkstemp(prefix='interpretable_adv-', suffix='.txt')
        with os.fdopen(descriptor, 'w', encoding='utf-8', errors='backslashreplace') as stream:
            stream.writelines(lines)
    except OSError:  # a full disk, perhaps
        frame = traceback.extract_tb(error.__traceback__)[-1]
        return f'{what} in {frame.filename}, line {frame.lineno}: a defect, please report it'
    return f'{what}: a defect, please report it with the file {path}'


def _check_directory():
    try:
        os.getcwd()
    except OSError:
        raise UserError('the working directory has been deleted: change to another') from None


def _forget_output():
    """What could not be printed is not tried again when Python ends."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
