"""diff_upstream.sh against a stand-in clone, with and without planted differences."""
import json
import os
import subprocess

import numpy as np
import pytest

from experiments.upstream_diff import __main__ as command
from experiments.upstream_diff import (
    clone,
    differences,
    files,
    flags,
    known,
    numbers,
    recording,
    report,
)
from interpretable_adv.errors import UserError
from tests.experiments import stand_in

FAULTS, CHOICES = 11, 18  # of upstream, and where the paper leaves something open


@pytest.fixture
def diff(root, tmp_path):
    """Runs the script in an empty directory; returns the finished process."""
    def run(*arguments):
        elsewhere = tmp_path / 'elsewhere'
        elsewhere.mkdir(exist_ok=True)
        done = subprocess.run(['bash', str(root / 'experiments' / 'diff_upstream.sh'), *arguments],
                              cwd=elsewhere, capture_output=True, text=True, timeout=300)
        assert 'Traceback' not in done.stdout + done.stderr
        assert not os.listdir(elsewhere)
        return done
    return run


def tree(path):
    """Everything that can be seen of a folder: names, contents, times."""
    found = {}
    for folder, _, names in os.walk(path):
        found[folder] = os.stat(folder).st_mtime_ns
        for name in names:
            file = os.path.join(folder, name)
            with open(file, 'rb') as stream:
                found[file] = os.stat(file).st_mtime_ns, stream.read()
    return found


# A faithful clone ---------------------------------------------------------------------------

@pytest.mark.slow
def test_a_faithful_clone_agrees_and_is_left_alone(diff, tmp_path):
    path = stand_in.generate(tmp_path / 'clone')
    before = tree(path)
    done = diff(path, '--json')
    assert tree(path) == before
    result = json.loads(done.stdout)
    differing = [(section['title'], check) for section in result['sections']
                 for check in section['checks'] if check['agrees'] is False]
    assert not differing
    assert done.returncode == 0 and result['agrees'] is True
    assert 'revision unknown' in result['about'][0] and '615d564' in result['about'][0]

    checks = {section['title']: {check['name']: check for check in section['checks']}
              for section in result['sections']}
    for program, count in (('train.py', 45), ('pretrain.py', 26), ('analysis.py', 44),
                           ('visualize.py', 3)):
        section = next(value for title, value in checks.items()
                       if title.startswith(f'Flags of {program}'))
        assert section[f'{count} of {count} flags']['agrees']
        assert section['abbreviations']['agrees']
    for method in ('Adv', 'iAdv', 'VAT', 'iVAT'):
        step = checks[f'One step of {method}']
        for name in ('logits', 'loss_clean', 'loss_first', 'perturbation', 'loss_adv',
                     'gradients', 'parameters after the update'):
            assert step[name]['agrees'] and step[name]['difference'] < 5e-5, (method, name)
        assert ('neighbours, 5 of each word' in step) == method.startswith('i')
    for output in ('softmax', 'adaptive softmax'):
        assert checks[f'Language model, {output}: windows']['losses']['agrees']
    runs = checks['Trajectories on imdb']
    assert '30 values' in runs['iAdv: cross entropies']['detail']
    assert '20 values' in runs['VAT: divergences']['detail']
    assert runs['language model: perplexities']['difference'] < 1e-5
    for kind in ('classifier (HDF5)', 'language model (npz)'):
        for name in ('keys', 'shapes', 'written by upstream, read here',
                     'written here, read by upstream'):
            assert checks[f'Checkpoints of the {kind}'][name]['agrees'], (kind, name)

    shown = checks['Known differences (docs/differences.md)']
    for number, upstream, here in (
            ('U1', 'CUDA', '1 step done'), ('U2', "'use_bilstm'", 'done'),
            ('U2', 'Replacement index', 'load_file_preprocess_fce'),
            ('U3', 'out of bounds', '1 step done'), ('U5', 'zero-size', '3 steps done'),
            ('U6', 'continues silently', 'no_such_snapshot'),
            ('U7', 'lacks --use_attn_d', 'use_unlabled_to_vocab = 0'),
            ('U8', '2 files import pickle, 1 opens', 'here: 0 files import pickle, 0 opens'),
            ('U9', '24', '1 step done'), ('U10', 'upstream shows', 'accuracy_adv'),
            ('U11', 'clean', 'perturbed')):
        evidence = shown[number]['detail'].partition('→')[2]
        assert upstream in evidence and here in evidence, (number, evidence)


# Planted differences ------------------------------------------------------------------------

def test_changed_flags_are_found_and_named(diff, tmp_path):
    done = diff(stand_in.generate(tmp_path / 'clone', 'flag default', 'flag type',
                                  'flag added upstream'), '--sections', 'flags')
    text = ' '.join(done.stdout.split())
    for part in ('--nn_k: changed default: 15 upstream, 10 here',
                 '--clip: changed type: int upstream, float here',
                 '--use_char: missing here: --use_char', '43 of 46 flags'):
        assert part in text
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1] == 'differs'


@pytest.mark.parametrize('plants, section, expected', [
    (['checkpoint key'], 'checkpoints',
     ['only ours has: hidden_layer/W, hidden_layer/b',
      'only upstream has: middle_layer/W, middle_layer/b',
      'written here, read by upstream: upstream stopped']),
    (['missing epsilon'], 'numbers', ['its norm lacks the epsilon 1e-6 under the root']),
    # Both in one run: the sign shows in Adv and VAT, the offset in iAdv and iVAT.
    (['sign of the perturbation', 'other neighbour offset'], 'numbers',
     ["opposite sign: upstream's is the negative of ours",
      "other offset: upstream's begin at rank 2, ours at rank 1"]),
])
def test_a_planted_difference_is_found_and_named(tmp_path, capsys, plants, section, expected):
    path = stand_in.generate(tmp_path / 'clone', *plants)
    assert command.main([path, '--sections', section, '--steps', '0']) == 1
    lines = capsys.readouterr().out
    for part in expected:
        assert part in ' '.join(lines.split())
    assert lines.splitlines()[-1] == 'differs'


# What is no clone, and revisions ------------------------------------------------------------

@pytest.mark.parametrize('arguments, part', [
    ([], 'give either the path of a clone or --golden'),
    (['nowhere'], 'nowhere is not a folder'),
    (['--golden', 'nowhere'], 'no such folder'),
    (['.', '--sections', 'flags,taste'], 'taste is not one of'),
    (['.', '--full', 'nowhere'], 'imdb_pos_train.txt'),
    (['.'], 'it lacks train.py, nets.py'),
])
def test_a_usage_problem_is_one_line(arguments, part, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=part) as caught:
        command.main(arguments)
    assert '\n' not in str(caught.value)


def test_a_usage_problem_has_exit_status_2(diff, tmp_path):
    done = diff(stand_in.generate(tmp_path / 'clone', 'other class'))
    assert done.returncode == 2 and not done.stdout
    assert 'no class uniLSTM_iVAT' in done.stderr.splitlines()[-1]


def test_revisions_are_told(tmp_path):
    path = stand_in.generate(tmp_path / 'clone')
    assert clone.revision(path).startswith('revision unknown')

    def git(*arguments):
        subprocess.run(['git', '-C', path, '-c', 'user.name=a', '-c', 'user.email=a@b',
                        *arguments], check=True, capture_output=True)
    git('init')
    git('add', '-A')
    git('commit', '-m', 'a')
    before = tree(path)
    assert clone.revision(path).startswith('another revision, ')
    assert 'local changes' not in clone.revision(path)
    assert tree(path) == before
    (tmp_path / 'clone' / 'nets.py').write_text('changed')
    assert ', with local changes; this was written against 615d564' in clone.revision(path)
    # A folder inside another repository is not a clone.
    assert clone.revision(os.path.join(path, 'data')).startswith('revision unknown')


# Recordings ---------------------------------------------------------------------------------

def test_the_recordings_of_the_repository_agree(golden, capsys):
    before = tree(golden)
    assert command.main(['--golden', str(golden), '--sections', 'numbers']) == 0
    assert tree(golden) == before
    text = capsys.readouterr().out
    for part in ('One step of iVAT: agrees', 'One step of Adv, two layers: agrees',
                 'Trajectories on synthetic/mini_synthetic: agrees',
                 'Language model, softmax: windows: agrees'):
        assert part in text
    assert text.splitlines()[-1] == 'agrees'


def test_recorded_flags_and_checkpoints_agree(shared, capsys):
    status = command.main(['--golden', str(shared / 'golden'), '--sections', 'flags,checkpoints',
                           '--json'])
    result = json.loads(capsys.readouterr().out)
    assert status == 0 and result['agrees']
    checks = {check['name'] for section in result['sections'] for check in section['checks']}
    assert {'45 of 45 flags', '26 of 26 flags', 'its test logits'} <= checks


def test_a_changed_recording_is_found():
    """The comparison of trajectories can fail, and says where it does."""
    here = {'error': None, 'steps': [{'loss_clean': 0.1 * step} for step in range(8)],
            'log': [{'dev/main/accuracy': 50.0, 'test/main/accuracy': 60.0}],
            'param_norms': {'/W': 1.0}, 'param_sums': {'/W': 3.0}}
    theirs = {'losses': [0.1 * step for step in range(8)], 'kl': [],
              'log': ['[dev] accuracy:50.0', '[test] accuracy:60.0'],
              'param_norms': {'/W': 1.0}, 'param_sums': {'/W': 3.0}}
    assert [check.agrees for check in numbers.compare_run('x', theirs, here)] == [True] * 3
    theirs['losses'][4] += 0.01
    theirs['log'][1] = '[test] accuracy:61.0'
    theirs['param_sums']['/W'] = 3.1
    checks = numbers.compare_run('x', theirs, here)
    assert [check.agrees for check in checks] == [False] * 3
    assert 'the first to differ is number 5: 0.41 upstream, 0.4 here' in checks[0].detail
    theirs['losses'].pop()
    assert '7 upstream, 8 here' in numbers.compare_run('x', theirs, here)[0].detail


def test_changed_perplexities_are_found():
    here = {'error': None, 'steps': [{'loss': 2.0}], 'param_norms': {},
            'stdout': ['Epoch 1: val perp 100.0', 'test perplexity: 99.0', 'something else']}
    theirs = {'train_losses': [2.0], 'param_norms': {},
              'stdout': ['Epoch 1: val perp 100.05', 'test perplexity: 99.0']}
    checks = numbers.compare_run('x', theirs, here, is_lm=True)
    assert [check.agrees for check in checks] == [True, True]
    theirs['stdout'][0] = 'Epoch 1: val perp 100.2'
    assert numbers.compare_run('x', theirs, here, is_lm=True)[1].agrees is False


# Parts --------------------------------------------------------------------------------------

def test_text_is_shown_side_by_side(tmp_path):
    path = stand_in.generate(tmp_path / 'clone')
    lines = list(files.side_by_side(path, 'utils_pretrain.py', 120))
    assert any('# ---- lm/streams.py' in line for line in lines)
    assert any(line.startswith('class Streams:') for line in lines)
    assert any('class StreamIterator' in line[60:] for line in lines)
    assert max(map(len, lines)) <= 120
    with pytest.raises(UserError, match='--text none.py: give one of train.py'):
        list(files.side_by_side(path, 'none.py'))


def test_every_file_of_the_table_exists_here(root):
    for modules in files.CORRESPONDING.values():
        for name in modules:
            assert (root / name).is_file(), name


@pytest.mark.parametrize('entry, problem', [
    ({'flags': ['--n_epoch'], 'type': 'int', 'default': 30}, None),
    ({'flags': ['--n_epoch', '-n'], 'type': 'int', 'default': 30}, 'missing here: -n'),
    ({'flags': ['--n_epoch'], 'type': 'int', 'default': 31}, 'changed default: 31'),
    ({'flags': ['--n_epoch'], 'type': 'float', 'default': 30}, 'changed type: float'),
    ({'flags': ['--n_epoch'], 'action': "'store_true'"}, 'switch on one side'),
    ({'flags': ['--dataset'], 'default': 'imdb', 'choices': ['imdb', 'yelp']}, 'here: yelp'),
])
def test_flags_are_compared(entry, problem):
    checks = list(flags.compare_one([entry], flags.parser_of('interpretable_adv.train')))
    found = [check.detail for check in checks
             if check.agrees is False and check.name != 'abbreviations']
    assert not found if problem is None else problem in found[0]


def test_a_lost_abbreviation_is_found():
    """`--out` would mean --out_of_upstream to upstream's users, and is another flag here."""
    parser = flags.parser_of('interpretable_adv.train')
    entry = {'flags': ['--out_of_upstream'], 'type': 'str', 'default': ''}
    parser.add_argument('--out_of_upstream', default='')
    lost = [check for check in flags.compare_one([entry], parser)
            if check.name == 'abbreviations']
    assert lost[0].agrees is False and '--out' in lost[0].detail


def test_a_scaled_perturbation_is_described():
    ours = np.random.RandomState(0).normal(size=(6, 4))
    for theirs, part in ((2 * ours, "upstream's length is 2 times ours"),
                         (-2 * ours, 'opposite sign, and other lengths'),
                         (ours[::-1], 'other directions'), (ours[:5], 'shapes')):
        assert part in numbers.describe_perturbation(theirs, ours, [2, 4], 5)


def test_one_difference_makes_the_whole_differ():
    good = numbers.Section('a', [numbers.Check('x', True), numbers.Check('y', None, 'note')])
    bad = numbers.Section('b', [numbers.Check('z', False, difference=float('inf'),
                                              tolerance=0.1)])
    assert list(report.show(['head'], [good]))[-1] == 'agrees'
    assert list(report.show(['head'], [good, bad]))[-1] == 'differs'
    result = json.loads(report.as_json(['head'], [good, bad]))
    assert result['agrees'] is False and result['sections'][1]['checks'][0]['difference'] is None


def test_a_step_with_other_passes_is_refused():
    with pytest.raises(UserError, match='has 0 passes, 4 were expected'):
        recording.as_golden_step({}, 'ivat')


# The list ------------------------------------------------------------------------------------

def test_every_difference_is_listed_once():
    listed = [entry for group in differences.groups() for entry in group.differences]
    numbered = [entry.id for entry in listed]
    assert len(set(numbered)) == len(numbered)
    assert numbered[:FAULTS] == [f'U{number}' for number in range(1, FAULTS + 1)]
    assert numbered[FAULTS:FAULTS + CHOICES] == [
        f'P{number}' for number in range(1, CHOICES + 1)]
    assert all(entry.theirs.strip() and entry.here.strip() for entry in listed)


def test_the_page_shows_the_list(root):
    page = (root / 'docs' / 'differences.md').read_text(encoding='utf-8')
    assert page == differences.markdown()
    for group in differences.groups():
        for entry in group.differences:
            assert f'| {entry.id} | {entry.theirs} | {entry.here} |' in page


def test_what_demonstrates_the_papers_choices():
    evidence = known.Evidence(recording.Recordings('', [], {}), None, None)
    before, after = (float(part) for part in
                     evidence.show('P1').replace(' after SPGD', '').partition('loss ')[2]
                     .split(' before, '))
    assert after > before
    assert evidence.show('P3') == 'σ = 0.75 keeps 0 of 3, 1 of 4, 2 of 10, 25 of 100'
    assert 'differ by 0' in evidence.show('P4')
    assert evidence.show('P14') == ('a word twice in one review is unknown, a word in two reviews '
                                    'is known')
    assert 'leave it out' in evidence.show('D1') and 'own' in evidence.show('D2')
    assert 'less than 0' in evidence.show('D3')
    assert evidence.show('U1') is None and evidence.show('P5') is None
