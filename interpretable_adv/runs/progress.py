"""The line that tells how far a command is."""
import sys
import time

MODES = {'auto': None, 'on': True, 'off': False}  # of --progress


class LiveLine:
    """A line that the next one overwrites.

    Args:
        live: whether to show it; None: where the stream is a terminal.
        stream: None: standard output.
    """

    def __init__(self, live=None, stream=None):
        self.stream = stream or sys.stdout
        self.live = self.stream.isatty() if live is None else live
        self._shown = 0

    def show(self, text):
        """Shows a line until the next one."""
        if self.live:
            self._write(text, '\r')

    def print(self, text):
        """Prints a line that stays, in place of the live one."""
        self._write(text, '\n')

    def close(self):
        """Leaves the live line, if there is one, standing."""
        if self._shown:
            self.stream.write('\n')
            self._shown = 0

    def _write(self, text, end):
        # Whatever the live line showed is overwritten to its end.
        self.stream.write(text.ljust(self._shown) + end)
        self.stream.flush()
        self._shown = len(text) if end == '\r' else 0


class Counter:
    """A live line on standard error with what is done, how fast, and the time left.

    Args:
        total: how much there is to do.
        unit: what is counted.
        mode: of `MODES`.
    """

    SECONDS = 0.5  # between two updates of the line

    def __init__(self, total, unit, mode='auto', stream=None):
        self.total, self.unit, self.done = total, unit, 0
        self._line = LiveLine(MODES[mode], stream or sys.stderr)
        self._begin = self._last = time.monotonic()

    def add(self, count):
        """Counts what was done since the last call."""
        self.done += count
        now = time.monotonic()
        if now - self._last < self.SECONDS and self.done < self.total:
            return
        self._last = now
        rate = self.done / max(now - self._begin, 1e-9)
        text = f'{self.done:,} of {self.total:,} {self.unit}, {rate:,.1f} a second'
        if self.done < self.total:
            text += f', {duration((self.total - self.done) / rate)} left'
        self._line.show(text)

    def close(self):
        self._line.close()


def duration(seconds):
    """`'42 s'`, `'7 min'`, `'2 h 05 min'`."""
    if seconds < 90:
        return f'{seconds:.0f} s'
    minutes = round(seconds / 60)
    return f'{minutes} min' if minutes < 90 else f'{minutes // 60} h {minutes % 60:02} min'
