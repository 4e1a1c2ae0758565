"""experiments/pages.py: what is generated, and that the committed pages are up to date."""
import pathlib

import pytest

from experiments import collect, pages
from interpretable_adv.errors import UserError

PAGE = ('# Title\n\n<!-- generated: accuracies -->\nold\n<!-- end of generated -->\n\nBetween.\n\n'
        '<!-- generated: tables of experiments/results/small -->\nold\n'
        '<!-- end of generated -->\n\nText after it.\n')


@pytest.fixture
def project(results_folder, tmp_path):
    """A project with results of one preset and pages to fill."""
    root = tmp_path / 'project'
    collect.collect(str(results_folder), str(tmp_path / 'corpus'),
                    str(root / 'experiments' / 'results' / 'small'))
    (root / 'docs').mkdir()
    (root / 'README.md').write_text(PAGE, encoding='utf-8')
    (root / 'docs' / 'results.md').write_text(PAGE, encoding='utf-8')
    return root


def test_a_page_gets_its_blocks_and_nothing_else_changes(project):
    text = pages.filled(PAGE, project)
    start = '# Title\n\n<!-- generated: accuracies -->\n\n| Model | paper | ours, `small` |'
    assert text.startswith(start)
    assert '| Pretrained w/ AdvT-Text | 93.58 | 93.50 ± 0.71 (2) |' in text
    assert '\n\nBetween.\n\n<!-- generated: tables of' in text
    assert '| Pretrained w/ AdvT-Text | 93.58 | 94.00 | 93.50 ± 0.71 (2) |' in text
    assert text.endswith('<!-- end of generated -->\n\nText after it.\n')
    assert '\nold\n' not in text
    assert pages.filled(text, project) == text


def test_without_results_the_page_says_so(tmp_path):
    assert 'No results are committed yet.' in pages.filled(PAGE, tmp_path)


def test_check_tells_outdated_pages(project, capsys):
    with pytest.raises(UserError, match='out of date; run'):
        pages.main(['--root', str(project), '--check'])
    assert pathlib.Path(project / 'README.md').read_text(encoding='utf-8') == PAGE
    pages.main(['--root', str(project)])
    pages.main(['--root', str(project), '--check'])
    assert 'all pages are up to date' in capsys.readouterr().out
    assert (project / 'experiments/results/small/tables/table3.csv').exists()
    assert (project / 'docs' / 'differences.md').exists()


def test_the_committed_pages_are_what_the_results_give(root):
    for name in pages.PAGES:
        text = (root / name).read_text(encoding='utf-8')
        assert pages.BLOCK.search(text), f'{name} has no generated block'
    for path, content in pages.generated(str(root)).items():
        assert pathlib.Path(path).read_text(encoding='utf-8') == content, path
