"""Runs `python -m interpretable_adv.data` within the test's own process."""
from interpretable_adv import cli
from interpretable_adv.data.__main__ import main


def run(capsys, *argv):
    """Runs the command; returns exit status, standard output and error output."""
    status = 0
    try:
        cli.run(main, [str(argument) for argument in argv])
    except SystemExit as error:
        status = error.code or 0
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def fails(capsys, *argv):
    """Runs the command, which must fail in the agreed way; returns the message."""
    status, out, err = run(capsys, *argv)
    assert status == 2
    assert err.startswith('error: ')
    assert err.count('\n') == 1
    assert err.endswith('\n')
    return err
