"""cli.py: one line and exit status 2."""
import os
import subprocess
import sys
import tempfile

import pytest

from interpretable_adv import cli
from interpretable_adv.errors import UserError


def test_a_user_error_is_one_line_and_status_2(capsys):
    def main(argv):
        raise UserError('the thing\nis wrong: do that')

    with pytest.raises(SystemExit) as exit_:
        cli.run(main)
    assert exit_.value.code == 2
    assert capsys.readouterr().err == 'error: the thing is wrong: do that\n'


def test_a_wrong_flag_is_a_user_error():
    parser = cli.ArgumentParser(prog='it')
    parser.add_argument('--number', type=cli.at_least(2))
    for argv in (['--number', 'x'], ['--number', '1'], ['--nothing'], ['--number']):
        with pytest.raises(UserError, match='--help'):
            parser.parse_args(argv)


def test_help_stays_readable(capsys):
    parser = cli.ArgumentParser(prog='it')
    for number in range(50):
        parser.add_argument(f'--flag{number}', help='a flag')
    with pytest.raises(SystemExit):
        parser.parse_args(['--help'])
    output = capsys.readouterr().out
    assert output.startswith('usage: it [flags]\n') and 'None' not in output


def test_abbreviations_of_upstream_win():
    parser = cli.ArgumentParser(prog='it')
    parser.add_argument('--sparsity')
    parser.add_upstream_group('upstream').add_argument('--save_name')
    assert parser.parse_args(['--s', 'x']).save_name == 'x'
    assert parser.parse_args(['--sp', 'x']).sparsity == 'x'


@pytest.mark.parametrize('text, good', [('0', True), ('1', True), ('0.5', True), ('1.01', False),
                                        ('-0.1', False), ('nan', False)])
def test_share(text, good):
    parser = cli.ArgumentParser(prog='it')
    parser.add_argument('--share', type=cli.share)
    if good:
        assert parser.parse_args([f'--share={text}']).share == float(text)
    else:
        with pytest.raises(UserError, match='between 0 and 1'):
            parser.parse_args([f'--share={text}'])


@pytest.mark.parametrize('text, expected', [
    ('png', ['png']), ('html, png', ['html', 'png']), ('png,png,,html,', ['png', 'html'])])
def test_names_are_taken_once_and_in_order(text, expected):
    assert cli.parse_names(text, ('png', 'pdf', 'html'), '--format') == expected


@pytest.mark.parametrize('text, message', [
    ('png,svg', '--format: svg is not one of png, pdf'),
    (' , ', '--format is empty: give any of png, pdf'), ('', '--format is empty')])
def test_other_names_are_refused(text, message):
    with pytest.raises(UserError, match=message):
        cli.parse_names(text, ('png', 'pdf'), '--format')


@pytest.mark.parametrize('text, expected', [
    ('1', [1.0]), ('4,0,1.5', [4.0, 0.0, 1.5]), ('1,-2', None), ('1,inf', None), ('1,nan', None),
    ('1,x', None), ('1,', None)])
def test_numbers(text, expected):
    parser = cli.ArgumentParser(prog='it')
    parser.add_argument('--several', type=cli.numbers(float))
    if expected is None:
        with pytest.raises(UserError, match='invalid list of numbers value'):
            parser.parse_args([f'--several={text}'])
    else:
        assert parser.parse_args([f'--several={text}']).several == expected


@pytest.mark.parametrize('code', [
    'np.float32(3e38) * np.float32(10)', 'np.log(np.zeros(2))', 'np.zeros(2) / 0',
    'np.array([np.inf]) - np.inf', "warnings.warn('of a library')",
    "warnings.warn('old', FutureWarning)", "warnings.warn('old', DeprecationWarning)",
    'chainer.functions.softmax(np.full((1, 2), np.inf, np.float32))'])
def test_no_warning_of_a_library_reaches_the_terminal(root, code):
    program = (f'import warnings; from interpretable_adv import cli; import chainer; '
               f'import numpy as np; cli.run(lambda argv: {code})')
    done = subprocess.run([sys.executable, '-c', program], cwd=root, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, '', '')


# What else may go wrong -------------------------------------------------------------------------

def make_parser():
    parser = cli.ArgumentParser(prog='python -m it', description='Does it: python -m it --n 3')
    parser.add_argument('--n_epoch', type=int, default=3)
    parser.add_argument('--seed', '-s')
    parser.set_defaults(other=1)
    return parser


@pytest.mark.parametrize('argv, expected', [
    (['--epochs', '3'], 'did you mean --n_epoch?'), (['--nepoch=3'], 'did you mean --n_epoch?'),
    (['--seeed', '3'], 'did you mean --seed?'), (['--something'], 'arguments: --something (see'),
    (['word'], 'arguments: word (see')])
def test_a_misspelt_flag_has_a_suggestion(argv, expected):
    with pytest.raises(UserError) as error:
        make_parser().parse_args(argv)
    assert expected in str(error.value)


def test_suggestions_come_from_subcommands_too():
    parser = cli.ArgumentParser(prog='it')
    parser.add_subparsers(dest='command').add_parser('make').add_argument('--data_dir')
    with pytest.raises(UserError, match='did you mean --data_dir'):
        parser.parse_args(['make', '--datadir', 'x'])


def test_a_console_script_has_its_own_name(monkeypatch):
    monkeypatch.setattr('sys.argv', ['/usr/bin/spgd-train', '--help'])
    assert make_parser().prog == 'spgd-train'
    assert make_parser().description == 'Does it: spgd-train --n 3'
    monkeypatch.setattr('sys.argv', ['/x/train.py'])
    assert make_parser().prog == 'python -m it'


def test_what_was_typed():
    assert cli.typed(make_parser(), []) == set()
    assert cli.typed(make_parser(), ['--n_e', '3']) == {'n_epoch'}  # also when it is the default
    assert cli.typed(make_parser(), ['-s', 'x', '--n_epoch=4']) == {'n_epoch', 'seed'}


@pytest.mark.parametrize('kind, text, good', [
    (cli.at_least(1), '2147483647', True), (cli.at_least(1), '2147483648', False),
    (cli.at_least(1, at_most=64), '65', False), (cli.at_least(0, float), '1e9', True),
    (cli.at_least(0, float), 'inf', False), (cli.at_least(0, float), 'nan', False),
    (cli.at_least(0, float), '1.1e9', False), (cli.at_least(1), '9' * 5000, False)])
def test_numbers_have_a_largest_value(kind, text, good):
    parser = cli.ArgumentParser(prog='it')
    parser.add_argument('--number', type=kind)
    if good:
        assert parser.parse_args(['--number', text]).number == float(text)
    else:
        with pytest.raises(UserError, match='--number'):
            parser.parse_args(['--number', text])


def test_an_argument_that_is_not_utf8_is_refused():
    with pytest.raises(UserError, match='is not UTF-8'):
        make_parser().parse_args(['--seed', b'\xff'.decode('utf-8', 'surrogateescape')])


def run_code(code, root, **options):
    program = f'from interpretable_adv import cli; import os; cli.run(lambda argv: {code})'
    return subprocess.run([sys.executable, '-c', program], text=True, stderr=subprocess.PIPE,
                          **{'cwd': root, 'stdout': subprocess.PIPE, **options})


@pytest.mark.skipif(not os.path.exists('/dev/full'), reason='needs /dev/full')
@pytest.mark.parametrize('code', ["print('x')", "print('x' * 10**6)", "print('x', flush=True)"])
def test_output_that_cannot_be_written_is_one_line(root, code):
    with open('/dev/full', 'w') as full:
        done = run_code(code, root, stdout=full)
    assert done.returncode == 2
    assert done.stderr.startswith('error: cannot write the output: No space left')
    assert done.stderr.count('\n') == 1


def test_a_terminal_without_greek_gets_numbers(root):
    done = run_code("print('ε')", root, env={**os.environ, 'PYTHONIOENCODING': 'ascii'})
    assert (done.returncode, done.stdout, done.stderr) == (0, '\\u03b5\n', '')


def test_a_deleted_working_directory_is_one_line(root, tmp_path):
    done = subprocess.run(
        [sys.executable, '-c', 'import os; from interpretable_adv import cli; os.mkdir("gone"); '
         'os.chdir("gone"); os.rmdir("../gone"); cli.run(print)'], cwd=tmp_path,
        env={**os.environ, 'PYTHONPATH': str(root)}, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr == 'error: the working directory has been deleted: change to another\n'


@pytest.mark.parametrize('error, status, line', [
    (KeyboardInterrupt(), 130, 'interrupted\n'),
    (KeyboardInterrupt('run it again'), 130, 'interrupted; run it again\n'),
    (MemoryError('Unable to allocate 9 GiB'), 2,
     'error: not enough memory (Unable to allocate 9 GiB): choose smaller sizes or a smaller '
     'batch\n'),
    (MemoryError(), 2, 'error: not enough memory (an allocation failed): choose smaller sizes or a '
     'smaller batch\n')])
def test_other_ends(capsys, error, status, line):
    def main(argv):
        raise error
    with pytest.raises(SystemExit) as exit_:
        cli.run(main)
    assert (exit_.value.code, capsys.readouterr().err) == (status, line)


def run_failing(capsys, error):
    def main(argv):
        raise error

    with pytest.raises(SystemExit) as exit_:
        cli.run(main)
    return exit_.value.code, capsys.readouterr().err


def test_an_unexpected_exception_asks_for_a_report(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, 'tempdir', str(tmp_path))
    status, line = run_failing(capsys, KeyError('the\nkey'))
    path, = tmp_path.iterdir()
    assert status == 1 and line.count('\n') == 1
    assert line.startswith('error: unexpected KeyError') and 'report' in line and str(path) in line
    assert 'raise error' in path.read_text() and 'Python 3' in path.read_text()


def test_a_defect_is_one_line_also_where_no_file_can_be_written(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, 'tempdir', str(tmp_path / 'missing'))
    status, line = run_failing(capsys, ZeroDivisionError())
    assert status == 1 and line.count('\n') == 1
    assert 'test_cli.py, line' in line and 'Traceback' not in line
