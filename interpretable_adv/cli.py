"""What all commands share: one-line errors with exit status 2, and upstream's 0/1 switches."""
import argparse
import sys


class UserError(Exception):
    """Something the user can put right. The message names the thing and the remedy."""


class ArgumentParser(argparse.ArgumentParser):
    """Reports a wrong flag in one line instead of below a page of usage."""

    def __init__(self, **kwargs):
        kwargs.setdefault('formatter_class', argparse.ArgumentDefaultsHelpFormatter)
        super().__init__(**kwargs)

    def error(self, message):
        raise UserError(f'{message} (see {self.prog} --help)')


def run(main, argv=None):
    """Runs a command's `main(argv)`; a `UserError` becomes one line and exit status 2."""
    try:
        main(argv)
    except UserError as error:
        print('error:', ' '.join(str(error).split()), file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print('interrupted', file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:  # the reader of our output has gone, e.g. `| head`
        sys.stderr.close()
        sys.exit(141)
