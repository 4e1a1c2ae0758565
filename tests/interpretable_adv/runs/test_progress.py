"""progress.py: what the line shows, and that it leaves nothing of the one before."""
import io

import pytest

from interpretable_adv.runs import progress
from interpretable_adv.runs.progress import Counter, LiveLine, duration


class Stream(io.StringIO):
    """A stream that may be a terminal, and counts how often it is flushed."""

    def __init__(self, terminal=False):
        super().__init__()
        self.terminal, self.flushes = terminal, 0

    def isatty(self):
        return self.terminal

    def flush(self):
        self.flushes += 1


def screen(text):
    """The lines that a terminal shows after a text with carriage returns."""
    lines, column = [''], 0
    for character in text:
        if character == '\r':
            column = 0
        elif character == '\n':
            lines.append('')
            column = 0
        else:
            lines[-1] = lines[-1][:column].ljust(column) + character + lines[-1][column + 1:]
            column += 1
    return [line.rstrip() for line in lines]


@pytest.fixture
def clock(monkeypatch):
    """A clock that the test sets."""
    now = [100.0]
    monkeypatch.setattr(progress.time, 'monotonic', lambda: now[0])

    def set_to(seconds):
        now[0] = 100.0 + seconds
    return set_to


# LiveLine -------------------------------------------------------------------------------------

def test_a_line_overwrites_the_one_before_to_its_end():
    stream = Stream()
    line = LiveLine(True, stream)
    line.show('a long line')
    line.show('short')
    assert screen(stream.getvalue()) == ['short']
    assert stream.getvalue() == 'a long line\rshort      \r'
    line.show('and a longer one again')
    assert screen(stream.getvalue()) == ['and a longer one again']


def test_only_the_last_line_is_overwritten():
    stream = Stream()
    line = LiveLine(True, stream)
    line.show('x' * 20)
    line.show('yy')
    line.show('z')
    assert stream.getvalue().endswith('\rz \r')  # what was blanked before stays blank


def test_a_printed_line_takes_the_place_of_the_live_one():
    stream = Stream()
    line = LiveLine(True, stream)
    line.show('half way there')
    line.print('done')
    line.print('and')
    line.show('new')
    assert screen(stream.getvalue()) == ['done', 'and', 'new']
    assert stream.getvalue().split('\n')[1] == 'and'  # nothing is left to blank


def test_closing_leaves_the_live_line_standing_and_ends_it_once():
    stream = Stream()
    line = LiveLine(True, stream)
    line.close()
    assert stream.getvalue() == ''
    line.show('so far')
    line.close()
    line.close()
    assert stream.getvalue() == 'so far\r\n'
    line.show('x')
    assert stream.getvalue() == 'so far\r\nx\r'


def test_a_line_that_is_not_live_prints_only():
    stream = Stream()
    line = LiveLine(False, stream)
    line.show('half')
    line.print('whole')
    line.close()
    assert stream.getvalue() == 'whole\n'


@pytest.mark.parametrize('live, terminal, shown', [
    (None, True, True), (None, False, False), (True, False, True), (False, True, False)])
def test_a_line_is_live_on_a_terminal_unless_told(live, terminal, shown):
    stream = Stream(terminal)
    line = LiveLine(live, stream)
    assert line.live == shown
    line.show('x')
    assert stream.getvalue() == ('x\r' if shown else '')


def test_every_line_is_seen_at_once():
    stream = Stream()
    line = LiveLine(True, stream)
    line.show('a')
    assert stream.flushes == 1
    line.print('b')
    assert stream.flushes == 2


def test_standard_output_is_the_default(capsys):
    LiveLine().print('here')
    output = capsys.readouterr()
    assert (output.out, output.err) == ('here\n', '')


# Counter --------------------------------------------------------------------------------------

def test_a_counter_tells_what_is_done_how_fast_and_the_time_left(clock):
    stream = Stream()
    counter = Counter(2000, 'reviews', 'on', stream)
    clock(2)
    counter.add(500)
    assert screen(stream.getvalue()) == ['500 of 2,000 reviews, 250.0 a second, 6 s left']
    clock(10)
    counter.add(500)
    assert screen(stream.getvalue()) == ['1,000 of 2,000 reviews, 100.0 a second, 10 s left']
    clock(20)
    counter.add(1000)
    counter.close()
    assert screen(stream.getvalue()) == ['2,000 of 2,000 reviews, 100.0 a second', '']


def test_a_counter_shows_no_more_than_two_lines_a_second_and_always_the_last(clock):
    stream = Stream()
    counter = Counter(100, 'attacks', 'on', stream)
    for hundredth in range(1, 100):
        clock(hundredth / 100)
        counter.add(1)
    shown = stream.getvalue().split('\r')
    assert [line.split(' of')[0] for line in shown[:-1]] == ['50']
    clock(0.995)
    counter.add(1)
    assert '100 of 100 attacks' in stream.getvalue()
    assert counter.done == 100


def test_what_was_not_shown_is_counted(clock):
    stream = Stream()
    counter = Counter(10, 'reviews', 'on', stream)
    clock(0.1)
    counter.add(3)
    assert stream.getvalue() == ''
    clock(1)
    counter.add(2)
    assert stream.getvalue().startswith('5 of 10 reviews, 5.0 a second, 1 s left')


@pytest.mark.parametrize('mode, terminal, shown', [
    ('auto', False, False), ('auto', True, True), ('on', False, True), ('off', True, False)])
def test_modes_of_a_counter(clock, mode, terminal, shown):
    stream = Stream(terminal)
    counter = Counter(4, 'reviews', mode, stream)
    clock(1)
    counter.add(4)
    counter.close()
    assert stream.getvalue() == ('4 of 4 reviews, 4.0 a second\r\n' if shown else '')


def test_a_counter_writes_to_standard_error(clock, capsys):
    counter = Counter(1, 'reviews', 'on')
    clock(1)
    counter.add(1)
    counter.close()
    output = capsys.readouterr()
    assert output.out == '' and output.err == '1 of 1 reviews, 1.0 a second\r\n'


def test_work_that_takes_no_time_has_no_rate_of_zero(clock):
    stream = Stream()
    Counter(5, 'reviews', 'on', stream).add(5)
    assert stream.getvalue().startswith('5 of 5 reviews, ')


# Durations ------------------------------------------------------------------------------------

@pytest.mark.parametrize('seconds, text', [
    (3.2, '3 s'), (89, '89 s'), (90, '2 min'), (120, '2 min'), (3600, '60 min'),
    (5340, '89 min'), (5400, '1 h 30 min'), (7500, '2 h 05 min')])
def test_duration(seconds, text):
    assert duration(seconds) == text
