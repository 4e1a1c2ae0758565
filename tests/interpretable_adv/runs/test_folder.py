"""folder.py: what a run begins with, and whether there is one already."""
import json

import pytest

from interpretable_adv.errors import UserError
from interpretable_adv.nn import kernels
from interpretable_adv.runs import folder


def test_a_run_that_goes_on_has_no_result(tmp_path):
    (tmp_path / 'result.json').write_text('{"n_epoch": 3}')
    folder.describe_run(str(tmp_path), {'n_epoch': 6}, ['a', 'b'])
    assert sorted(path.name for path in tmp_path.iterdir()) == ['args.json', 'vocab.txt']


def test_a_run_is_described_in_a_folder_that_is_made(tmp_path):
    folder.describe_run(str(tmp_path / 'new' / 'run'), {'n_epoch': 6}, ['<eos>', 'é'])
    assert json.loads((tmp_path / 'new' / 'run' / 'args.json').read_text()) == {'n_epoch': 6}
    assert (tmp_path / 'new' / 'run' / 'vocab.txt').read_text(encoding='utf-8') == '<eos>\né\n'


def test_a_snapshot_is_found_and_needs_resume(tmp_path):
    assert not folder.find_snapshot(str(tmp_path), False)
    assert not folder.find_snapshot(str(tmp_path), True)
    (tmp_path / folder.SNAPSHOT).write_bytes(b'')
    assert folder.find_snapshot(str(tmp_path), True)
    with pytest.raises(UserError, match='holds a run already: .*--resume'):
        folder.find_snapshot(str(tmp_path), False)


def test_versions_name_what_the_numbers_depend_on():
    found = folder.versions()
    numbered = {'interpretable_adv', 'chainer', 'numpy', 'python', 'h5py'}
    assert set(found) == {*numbered, 'blas', 'kernels'}
    assert all(found[name][0].isdigit() for name in numbered)
    assert 'openblas' in found['blas'].lower() and found['kernels'] == kernels.variant


def test_a_run_keeps_others_out_and_says_how_to_resume(tmp_path):
    with folder.claim(str(tmp_path)):
        with pytest.raises(UserError, match='in use'), folder.claim(str(tmp_path)):
            pass
        with folder.claim(str(tmp_path), writes=False):  # another process of the same job
            pass
    with pytest.raises(KeyboardInterrupt, match='no snapshot yet'), folder.claim(str(tmp_path)):
        raise KeyboardInterrupt
    (tmp_path / folder.SNAPSHOT).touch()
    with pytest.raises(KeyboardInterrupt, match='with the same command and --resume'):
        with folder.claim(str(tmp_path)):
            raise KeyboardInterrupt


@pytest.mark.parametrize('name', folder.FILES)
def test_a_folder_in_the_way_is_refused_before_the_run(tmp_path, name):
    (tmp_path / name).mkdir()
    with pytest.raises(UserError, match=f'{name} is a folder'), folder.claim(str(tmp_path)):
        pass


def test_a_run_stands_for_its_model(tmp_path):
    assert folder.model_file(str(tmp_path)) == str(tmp_path / 'best.model')
    assert folder.model_file(str(tmp_path / 'other.model')) == str(tmp_path / 'other.model')
    assert folder.model_file('') == ''
