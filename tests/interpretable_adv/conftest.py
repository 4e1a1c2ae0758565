"""Example records and a headless browser, for the tests of what is drawn from records."""
import base64
import json
import os
import pathlib
import select
import shutil
import subprocess
import time

import numpy as np
import pytest

VOCABULARY = ('the a I it film movie was is good bad great terrible really quite boring plot '
              'acting story wonderful disappointing and but not never always watch again recommend '
              'cinematography soundtrack performance unbelievable characters').split()
EPSILON = {'adv': 5.0, 'iadv': 15.0, 'spgd': 25.0}


def example_record(index=0, method='adv', words=12, neighbors=5, **fields):
    """A record drawn from a generator seeded by its arguments; `words` is a number or a list."""
    generator = np.random.RandomState([index, sum(map(ord, method))])
    if isinstance(words, int):
        words = [*np.random.RandomState(index).choice(VOCABULARY, words - 1).tolist(), '<eos>']
    norms = generator.gamma(1.2, 0.2, len(words))
    if method == 'spgd':
        norms[np.argsort(-norms)[max(1, len(words) // 4):]] = 0
    entries = []
    for word, norm in zip(words, norms.tolist()):
        others = [other for other in VOCABULARY if other != word]
        names = generator.choice(others, neighbors, replace=False).tolist()
        cosines = (generator.uniform(-0.4, 0.6, neighbors) * (norm > 0)).tolist()
        best = int(np.argmax(cosines))
        entries.append({
            'word': word, 'toward': names[best] if norm else word,
            'nearest': names[best] if norm > 0.5 else word, 'norm': norm,
            'relative_norm': norm / norms.max(), 'max_cosine': cosines[best],
            'cosines': cosines, 'neighbors': names,
            'neighbor_distance': float(generator.uniform(2, 4))})
    return {'index': index, 'method': method, 'label': 1, 'prediction': 1,
            'prediction_adv': int(method == 'spgd'), 'epsilon': EPSILON.get(method, 1.0),
            'words': entries, **fields}


@pytest.fixture(scope='session')
def make_record():
    return example_record


@pytest.fixture(scope='session')
def make_review():
    """One review under the paper's three methods."""
    def make(index=0, methods=('adv', 'iadv', 'spgd'), **fields):
        return [example_record(index, method, **fields) for method in methods]
    return make


@pytest.fixture(scope='session')
def write_records():
    def write(path, *reviews):
        lines = [json.dumps(record) + '\n' for review in reviews for record in review]
        pathlib.Path(path).write_text(''.join(lines), encoding='utf-8')
        return str(path)
    return write


class Browser:
    """Headless Chromium, driven over its DevTools pipe: file descriptors 3 (in) and 4 (out)."""

    FLAGS = ('--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run',
             '--disable-background-networking', '--disable-component-update', '--disable-sync',
             '--disable-dev-shm-usage', '--hide-scrollbars', '--remote-debugging-pipe')

    def __init__(self, executable, profile):
        child_in, self._to_child = os.pipe()
        self._from_child, child_out = os.pipe()

        def connect():  # in the child: move the pipe's ends to where Chromium looks for them
            copies = os.dup(child_in), os.dup(child_out)
            os.dup2(copies[0], 3)
            os.dup2(copies[1], 4)

        self._process = subprocess.Popen(
            [executable, *self.FLAGS, f'--user-data-dir={profile}'], close_fds=False,
            preexec_fn=connect, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(child_in)
        os.close(child_out)
        self._buffer, self._last, self._session = b'', 0, None
        self.events = []
        target = self.call('Target.createTarget', url='about:blank')['targetId']
        self._session = self.call('Target.attachToTarget', targetId=target,
                                  flatten=True)['sessionId']
        for domain in ('Page', 'Runtime', 'Log', 'Network'):
            self.call(f'{domain}.enable')

    def call(self, method, **parameters):
        self._last += 1
        message = {'id': self._last, 'method': method, 'params': parameters}
        if self._session:
            message['sessionId'] = self._session
        os.write(self._to_child, json.dumps(message).encode() + b'\0')
        while True:
            answer = self._receive()
            if answer.get('id') == self._last:
                assert 'error' not in answer, answer
                return answer['result']
            self.events.append(answer)

    def _receive(self, seconds=60):
        deadline = time.monotonic() + seconds
        while b'\0' not in self._buffer:
            ready, _, _ = select.select([self._from_child], [], [],
                                        max(0, deadline - time.monotonic()))
            assert ready, 'Chromium does not answer'
            chunk = os.read(self._from_child, 1 << 20)
            assert chunk, 'Chromium has ended'
            self._buffer += chunk
        message, self._buffer = self._buffer.split(b'\0', 1)
        return json.loads(message)

    def open(self, path, width=1280, height=900, scheme='light', mobile=False, fragment=''):
        """Loads a file or an address; afterwards `events` holds what happened since."""
        self.call('Emulation.setDeviceMetricsOverride', width=width, height=height,
                  deviceScaleFactor=1, mobile=mobile)
        self.call('Emulation.setTouchEmulationEnabled', enabled=mobile)
        self.call('Emulation.setEmulatedMedia',
                  features=[{'name': 'prefers-color-scheme', 'value': scheme}])
        address = str(path) if '://' in str(path) else pathlib.Path(path).resolve().as_uri()
        for url in ('about:blank', address + fragment):
            self.events = []
            self.call('Page.navigate', url=url)
            while not any(event.get('method') == 'Page.loadEventFired' for event in self.events):
                self.events.append(self._receive())

    def run(self, script):
        """The value of a JavaScript expression."""
        answer = self.call('Runtime.evaluate', expression=script, returnByValue=True,
                           awaitPromise=True)
        assert 'exceptionDetails' not in answer, answer
        return answer['result'].get('value')

    def wait(self, script, seconds=60):
        """Waits until a JavaScript expression is true."""
        deadline = time.monotonic() + seconds
        while not self.run(f'Boolean({script})'):
            assert time.monotonic() < deadline, f'never true: {script}'
            time.sleep(0.05)

    def type(self, text):
        """Types into the focused element."""
        self.call('Input.insertText', text=text)

    def press(self, key):
        codes = {'Enter': 13, 'Escape': 27, 'Tab': 9, 'ArrowLeft': 37, 'ArrowUp': 38,
                 'ArrowRight': 39, 'ArrowDown': 40, 'Home': 36, 'End': 35, 'PageDown': 34}
        text = {'text': '\r'} if key == 'Enter' else {}
        for kind in ('keyDown', 'keyUp'):
            self.call('Input.dispatchKeyEvent', type=kind, key=key, code=key,
                      windowsVirtualKeyCode=codes[key], **(text if kind == 'keyDown' else {}))

    def point(self, selector):
        """The centre of an element, in the window."""
        return self.run(f'(() => {{ const e = document.querySelector({json.dumps(selector)});'
                        ' e.scrollIntoView({block: "center"}); const b = e.getClientRects()[0];'
                        ' return [b.left + b.width / 2, b.top + b.height / 2]; })()')

    def hover(self, selector):
        x, y = self.point(selector)
        self.call('Input.dispatchMouseEvent', type='mouseMoved', x=x, y=y)

    def click(self, selector):
        x, y = self.point(selector)
        for kind in ('mousePressed', 'mouseReleased'):
            self.call('Input.dispatchMouseEvent', type=kind, x=x, y=y, button='left', clickCount=1)

    def tap(self, selector):
        x, y = self.point(selector)
        self.call('Input.dispatchTouchEvent', type='touchStart', touchPoints=[{'x': x, 'y': y}])
        self.call('Input.dispatchTouchEvent', type='touchEnd', touchPoints=[])
        self.run('new Promise((done) => setTimeout(done, 50))')

    def screenshot(self, path, whole=False):
        data = self.call('Page.captureScreenshot', captureBeyondViewport=whole)['data']
        pathlib.Path(path).write_bytes(base64.b64decode(data))

    def complaints(self):
        """Console errors and warnings, uncaught exceptions and log entries since `open`."""
        self.run('0')  # what was sent before this answer has now arrived
        found = []
        for event in self.events:
            method, details = event.get('method'), event.get('params', {})
            if method == 'Runtime.exceptionThrown' or method == 'Log.entryAdded':
                found.append(details)
            elif method == 'Runtime.consoleAPICalled' and details['type'] in ('error', 'warning'):
                found.append(details)
        return found

    def requests(self):
        """The addresses asked for since `open`."""
        self.run('0')
        return [event['params']['request']['url'] for event in self.events
                if event.get('method') == 'Network.requestWillBeSent']

    def close(self):
        os.close(self._to_child)
        os.close(self._from_child)
        self._process.terminate()
        self._process.wait(30)


@pytest.fixture(scope='session')
def browser(tmp_path_factory):
    executable = next(filter(None, map(shutil.which, ('chromium', 'chromium-browser',
                                                      'google-chrome'))), None)
    if executable is None:
        pytest.skip('needs Chromium to show the report in (apt-get install chromium)')
    driver = Browser(executable, tmp_path_factory.mktemp('profile'))
    yield driver
    driver.close()
