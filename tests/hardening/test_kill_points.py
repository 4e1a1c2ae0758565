"""A fixed sample of the kills; `python -m tests.hardening.kill_points` has more."""
import pytest

from tests.hardening import kill_points

SAMPLE = {'prepare imdb': 8, 'prepare own': 5, 'training': 4, 'language model': 3, 'collect': 3}


@pytest.mark.parametrize('name', SAMPLE)
def test_a_killed_writer_leaves_nothing_damaged_and_continues(tmp_path, name):
    writer, = (writer for writer in kill_points.WRITERS if writer.name == name)
    result = kill_points.campaign(writer, SAMPLE[name], 7, tmp_path)
    assert result.problems == []
    assert result.killed >= SAMPLE[name] - 1 and result.operations > 20


def test_the_campaign_finds_what_a_careless_writer_leaves(tmp_path):
    """A writer that does nothing to be safe: the check must not be blind."""
    def run(folder, again):
        (folder / 'half.tmp').write_text('x')
        (folder / 'one.json').write_text('{}')
        (folder / 'half.tmp').unlink()
        if not again:
            (folder / 'two.json').write_text('{}')

    writer = kill_points.Writer('careless', 1, lambda folder: None, run)
    problems = ' '.join(kill_points.campaign(writer, 4, 7, tmp_path).problems)
    assert 'lost: two.json' in problems
