"""visualize.py: which files the command writes, and what it refuses."""
import pytest

from interpretable_adv import cli, visualize
from interpretable_adv.errors import UserError
from interpretable_adv.evaluation import heatmap
from interpretable_adv.nn import kernels


def test_command_writes_all_formats(tmp_path, make_review, write_records, capsys, monkeypatch):
    monkeypatch.setattr(heatmap, 'PAGE_HEIGHT', 3.0)  # so that few words fill a page
    path = write_records(tmp_path / 'r.jsonl', make_review(3, words=5), make_review(17, words=24))
    visualize.main(['--records', path, '--out', str(tmp_path / 'new/out')])
    made = sorted(file.name for file in (tmp_path / 'new/out').iterdir())
    assert 'report.html' in made and 'review_00003.png' in made and 'review_00003.pdf' in made
    assert 'review_00017.pdf' in made and 'review_00017_p01.png' in made
    n_png = sum(name.endswith('.png') for name in made)
    assert capsys.readouterr().out == (
        f'{tmp_path}/new/out: 2 reviews, {n_png} PNG, 2 PDF, report.html\n')


def test_several_processes_draw_the_same_pictures(tmp_path, make_review, write_records, capsys,
                                                  monkeypatch):
    path = write_records(tmp_path / 'r.jsonl', *(make_review(i, words=3) for i in range(4)))
    monkeypatch.setattr(visualize, 'WORTH_A_PROCESS', 2)
    for name, threads in (('one', 1), ('two', 2)):
        monkeypatch.setattr(kernels, 'threads', threads)
        visualize.main(['--records', path, '--out', str(tmp_path / name), '--format', 'png'])
        assert '4 reviews, 4 PNG\n' in capsys.readouterr().out
    for file in (tmp_path / 'one').iterdir():
        assert file.read_bytes() == (tmp_path / 'two' / file.name).read_bytes()


def test_an_error_in_a_process_is_one_line(tmp_path, make_review, write_records, monkeypatch):
    path = write_records(tmp_path / 'r.jsonl', *(make_review(i, words=3) for i in range(4)))
    monkeypatch.setattr(visualize, 'WORTH_A_PROCESS', 2)
    monkeypatch.setattr(kernels, 'threads', 2)
    (tmp_path / 'review_00002.png').mkdir()
    with pytest.raises(UserError, match='cannot write .*review_00002.png'):
        visualize.main(['--records', path, '--out', str(tmp_path), '--format', 'png'])


def test_limit_says_what_it_leaves_out(tmp_path, make_review, write_records, capsys):
    path = write_records(tmp_path / 'r.jsonl', *(make_review(index) for index in range(4)))
    visualize.main(['--records', path, '--out', str(tmp_path), '--format', 'html', '--limit', '1'])
    assert '3 more reviews' in capsys.readouterr().err


def test_command_takes_upstreams_flags(tmp_path, make_review, write_records):
    path = write_records(tmp_path / 'r.jsonl', make_review(3))
    visualize.main(['--pickle', path, '--savefig', str(tmp_path / 'o'), '--xi', '15',
                    '--format', 'html'])
    assert (tmp_path / 'o/report.html').exists()
    defaults = visualize.make_parser().parse_args([])
    assert (defaults.records, defaults.out, defaults.xi_var) == ('', 'figs', 15.0)


@pytest.mark.parametrize('flags, message', [
    ([], '--records is missing'),
    (['--records', 'absent'], 'cannot read absent'),
    (['--records', 'absent', '--format', 'svg'], 'svg is not one of'),
    (['--records', 'absent', '--format', ','], '--format is empty'),
    (['--records', 'absent', '--limit', '0'], 'at least 1'),
    (['--records', 'absent', '--indices', '3,x'], '--indices 3,x'),
    (['--records', 'absent', '--layout', 'spiral'], 'layout'),
])
def test_wrong_flags_are_one_line(tmp_path, monkeypatch, capsys, flags, message):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as caught:
        cli.run(visualize.main, flags)
    assert caught.value.code == 2
    error = capsys.readouterr().err
    assert error.count('\n') == 1 and message in error
    assert list(tmp_path.iterdir()) == []


def test_unwritable_folder_is_one_line(tmp_path, make_review, write_records):
    path = write_records(tmp_path / 'r.jsonl', make_review(3))
    with pytest.raises(UserError, match='cannot create the folder'):
        visualize.main(['--records', path, '--out', path + '/inside'])
