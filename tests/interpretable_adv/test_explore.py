"""explore.py: the live page, what it is told, and what the server refuses."""
import concurrent.futures
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import interpretable_adv as ia
from interpretable_adv import cli, explore, nets
from interpretable_adv.evaluation import page, records
from interpretable_adv.runs import checkpoints
from lm.nets import RNNForLM

EXAMPLES = json.loads((page.ASSETS / 'examples.json').read_text(encoding='utf-8'))
SECONDS = float(os.environ.get('EXPLORE_SECONDS', '5'))  # tests/deep.sh: 30
JSON = {'Content-Type': 'application/json'}
WORD = '.word[data-panel="{}"][data-position="{}"]'


@pytest.fixture(scope='module')
def run(tmp_path_factory):
    """An untrained classifier and language model whose vocabulary is that of the examples."""
    folder = tmp_path_factory.mktemp('explore')
    known = sorted({word.lower() for example in EXAMPLES
                    for word in re.findall(r'\w+', example['text'])} - {'snorgling', 'flumptious'})
    words = ['<eos>', '<unk>', *known]
    np.random.seed(0)
    classifier = nets.Classifier(len(words), 12, 16)
    language_model = RNNForLM(len(words), 16, 12)
    for name, save, model in (('run', checkpoints.save_classifier, classifier),
                              ('lm', checkpoints.save_lm, language_model)):
        (folder / name).mkdir()
        save(str(folder / name / 'best.model'), model)
        checkpoints.save_vocabulary(str(folder / name / 'vocab.txt'), words)
        (folder / name / 'args.json').write_text(json.dumps({
            'method': 'spgd', 'lower': 1, 'ignore_unk': 1, 'nn_k': 15, 'tokenizer': 'words',
            'label_names': ['negative', 'positive'], 'train_vocab_size': len(known)}))
    return folder


@pytest.fixture(scope='module')
def server(run):
    model = ia.load(run / 'run', lm=run / 'lm')
    with explore.Server(explore.Explorer(model, 'run'), 0) as server:
        server.model = model
        thread = threading.Thread(target=server.serve_forever, kwargs={'poll_interval': 0.05})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def ask(server, method='POST', path='/api/attack', body=None, headers=JSON):
    """Status, headers and decoded answer of a request."""
    connection = http.client.HTTPConnection('127.0.0.1', server.server_port, timeout=60)
    try:
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        content = response.read()
        return response.status, response.headers, json.loads(content) if content else None
    finally:
        connection.close()


def attack(server, **fields):
    status, _, answer = ask(server, body=json.dumps(fields))
    assert status == 200, answer
    return answer


def send(server, content):
    """The answer to raw bytes after which the client sends nothing more."""
    with socket.create_connection(('127.0.0.1', server.server_port), timeout=60) as connection:
        connection.sendall(content)
        connection.shutdown(socket.SHUT_WR)
        answer = b''
        while chunk := connection.recv(1 << 16):
            answer += chunk
    return answer


# What the page is told --------------------------------------------------------------------------

def test_the_model_describes_itself(server):
    status, headers, answer = ask(server, 'GET', '/api/model')
    assert status == 200 and headers['Content-Type'] == 'application/json; charset=utf-8'
    assert answer['labels'] == ['negative', 'positive'] and answer['language_model']
    assert answer['n_words'] == len(server.model.words)
    assert answer['methods']['adv'] == {'title': 'AdvT-Text', 'uses': ['epsilon'], 'epsilon': 5}
    assert answer['methods']['spgd']['uses'] == ['epsilon', 'k', 'sparsity', 'iterations']
    assert answer['shown_first'] == ['adv', 'iadv', 'spgd']


def test_records_are_those_of_the_python_api(server):
    text = EXAMPLES[0]['text']
    answer = attack(server, text=text, methods=['spgd', 'adv'], epsilon={'spgd': 7}, sparsity=0.5,
                    k=4, iterations=2, label='negative')
    options = {'sparsity': 0.5, 'k': 4, 'iterations': 2}
    expected = [
        server.model.attack([text], 'spgd', ['negative'], epsilon=7, **options)[0].to_dict(),
        server.model.attack([text], 'adv', ['negative'], **options)[0].to_dict()]
    assert answer['records'] == json.loads(json.dumps(expected))
    for record in answer['records']:
        assert records.parse(json.dumps(record), 'the answer') == record
    assert [shown['title'] for shown in answer['shown']] == ['SPGD', 'AdvT-Text']
    assert answer['shown'][0]['hue'] == 'blue' and answer['shown'][0]['note'] is None
    assert set(answer['records'][0]['perplexity']) == {'clean', 'continuous', 'nearest',
                                                       'direction'}


def test_without_settings_the_models_own_and_the_predicted_class_are_attacked(server):
    text = EXAMPLES[1]['text']
    answer = attack(server, text=text)
    prediction, = server.model.predict([text])
    assert answer['prediction'] == prediction.label
    assert answer['probabilities'] == pytest.approx(prediction.probabilities)
    assert [record['method'] for record in answer['records']] == ['adv', 'iadv', 'spgd']
    assert [record['epsilon'] for record in answer['records']] == [5, 15, 25]
    assert {record['label'] for record in answer['records']} == {
        server.model.labels.index(prediction.label)}


def test_the_largest_k_is_that_of_the_vocabulary(server):
    largest = server.model.largest_k
    for method in ('iadv', 'spgd'):
        assert server.model.attack(['a film'], method, k=largest)
        with pytest.raises(ValueError, match='k is'):
            server.model.attack(['a film'], method, k=largest + 1)
    limits = ask(server, 'GET', '/api/model')[2]['limits']
    assert limits['k'] == min(largest, 100) and limits['slider_k'] == 30


def test_unknown_words_are_listed(server):
    answer = attack(server, text='Flumptious, snorgling film', methods=['adv'])
    assert answer['unknown'] == ['Flumptious', 'snorgling']
    assert [word['word'] for word in answer['records'][0]['words']] == ['film', '<eos>']
    assert attack(server, text='\0 😀 مرحبا', methods=['spgd'])['records'][0]['words']


def test_a_text_in_which_nothing_moves_says_why(server):
    answer = attack(server, text='film', methods=['spgd', 'adv'], epsilon={'adv': 0})
    assert 'keeps no word' in answer['shown'][0]['note']
    assert 'ε is 0' in answer['shown'][1]['note']


def test_the_page_is_one_file_that_loads_nothing(server):
    connection = http.client.HTTPConnection('127.0.0.1', server.server_port)
    connection.request('GET', '/')
    response = connection.getresponse()
    text = response.read().decode()
    assert response.status == 200 and response.headers['X-Content-Type-Options'] == 'nosniff'
    policy = response.headers['Content-Security-Policy']
    assert "default-src 'none'" in policy and "connect-src 'self'" in policy
    assert 'unsafe' not in policy and 'http' not in policy
    assert not re.search(r'src="|@import|url\(|@@', text)
    assert re.findall(r'href="([^"]*)"', text) == ['data:,']
    connection.request('HEAD', '/')  # on the same connection
    response = connection.getresponse()
    assert response.status == 200 and response.read() == b''
    connection.close()


def test_ten_examples_of_ours():
    assert len(EXAMPLES) == 10 and len({example['title'] for example in EXAMPLES}) == 10
    lengths = [len(example['text'].split()) for example in EXAMPLES]
    assert min(lengths) <= 5 and max(lengths) >= 240


# What it refuses --------------------------------------------------------------------------------

def malformed_bodies():
    """Bodies of `POST /api/attack` that are not what it takes."""
    good = {'text': 'a film'}
    yield from (b'', b' ', b'{', b'}', b'[', b'{"text"', b'{"text":}', b"{'text': 'a'}", b'text=a',
                b'\xff\xfe', b'\x00', b'\xef\xbb\xbf{}', b'{"text": "a"} x', b'{"text": "\xe9"}',
                b'nul', b'{"text": "a\nb"}', b'[' * 50_000, b'{"a":' * 10_000, b'1' * 5000,
                b'{"text": "a", "text": "b"}', b'{"text": "a", "k": 01}',
                b'{"text": "a", "epsilon": NaN}', b'{"text": "a", "epsilon": Infinity}',
                b'{"text": "a", "epsilon": -Infinity}', b'{"text": "a", "epsilon": 1e999}',
                b'{"text": "a", "epsilon": ' + b'9' * 5000 + b'}', b'{"text": "\\ud800"}',
                b'{"text": "a", "\\ud800": 1}')
    for value in (None, True, 1, 1.5, 'text', [], [good]):
        yield value
    for text in (None, True, 0, 1.5, [], ['a'], {}, '', ' ', '\n\t', 'a ' * 3001):
        yield {'text': text}
    for name in ('Text', 'method', 'seed', 'step', 'rank', '', ' ', '__class__', 'x' * 1000, 'é'):
        yield {**good, name: 1}
    for methods in ('spgd', '', [], {}, 1, True, ['none'], ['SPGD'], ['spgd', 1], [None], [[]],
                    ['baseline'], ['spgd', 'x'], [''], [{}]):
        yield {**good, 'methods': methods}
    numbers = ('1', '', True, False, [], [1], {'k': 1}, -1, -0.001, 1e300)
    for name in ('epsilon', 'sparsity', 'k', 'iterations'):
        for value in numbers:
            yield {**good, name: value}
    for value in (1.000001, 2, 75):
        yield {**good, 'sparsity': value}
    for name in ('k', 'iterations'):
        for value in (0, 1.5, 2.0, 101, 10 ** 30):
            yield {**good, name: value}
    for value in (1_000_001, {'none': 1}, {'spgd': '1'}, {'spgd': -1}, {'spgd': True},
                  {'spgd': {}}, {'adv': 1, 'x': 1}, {'': 1}):
        yield {**good, 'epsilon': value}
    for label in ('Positive', '', 'neutral', -1, 2, 10 ** 30, 1.0, True, [], {}, ['positive']):
        yield {**good, 'label': label}


def malformed_requests():
    """Bytes that are no proper request."""
    host = b'Host: localhost\r\n'
    json_ = host + b'Content-Type: application/json\r\n'
    for line in (b'', b'\r\n', b'GET', b'GET /', b'GET / HTTP', b'GET / HTTP/x', b'GET / HTTP/9.9',
                 b'get / HTTP/1.1', b'BREW / HTTP/1.1', b'\x16\x03\x01\x02\x00\x01', b'\x00' * 50,
                 b'GET ' + b'/x' * 40_000 + b' HTTP/1.1', b'GET / HTTP/1.1 extra'):
        yield line + b'\r\n' + host + b'\r\n'
    for method in (b'PUT', b'DELETE', b'PATCH', b'OPTIONS', b'TRACE', b'CONNECT', b'POST'):
        for path in (b'/', b'/api/model'):
            yield method + b' ' + path + b' HTTP/1.1\r\n' + host + b'Content-Length: 0\r\n\r\n'
    for path in (b'/api', b'/api/', b'/api/attack', b'/api/attack/', b'/../etc/passwd',
                 b'/%2e%2e/', b'/index.html', b'/components.js', b'*', b'http://example.org/',
                 b'/\xff', b'/api/model/x'):
        yield b'GET ' + path + b' HTTP/1.1\r\n' + host + b'\r\n'
    post = b'POST /api/attack HTTP/1.1\r\n'
    for length in (b'', b'-1', b'x', b'1.5', b'1e3', b'0x10', b'100001', b'9' * 30, b'+5',
                   b'\xc2\xb2', b'2\r\nContent-Length: 3'):
        yield post + json_ + b'Content-Length: ' + length + b'\r\n\r\n{}'
    yield post + json_ + b'\r\n{"text": "a"}'
    yield post + json_ + b'Content-Length: 50\r\n\r\n{"text": "a"}'  # cut short
    yield post + json_ + b'Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n'
    for kind in (b'text/plain', b'application/x-www-form-urlencoded', b'multipart/form-data',
                 b'', b'application/json5'):
        yield (post + host + b'Content-Type: ' + kind
               + b'\r\nContent-Length: 13\r\n\r\n{"text": "a"}')
    yield post + host + b'Content-Length: 13\r\n\r\n{"text": "a"}'
    yield b'GET / HTTP/1.1\r\n' + host + b'X: ' + b'y' * 70_000 + b'\r\n\r\n'
    yield b'GET / HTTP/1.1\r\n' + host + b'X: y\r\n' * 200 + b'\r\n'
    yield b'GET / HTTP/1.1\r\n\r\n'
    yield b'GET / HTTP/1.1\r\n' + host * 2 + b'\r\n'


def test_two_hundred_malformed_requests_get_one_json_error_each(server, capfd):
    bodies, requests = list(malformed_bodies()), list(malformed_requests())
    assert len(bodies) + len(requests) >= 200
    for body in bodies:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        status, headers, answer = ask(server, body=content)
        assert 400 <= status < 500, (content[:80], answer)
        assert set(answer) == {'error'} and 5 < len(answer['error']) < 300, content[:80]
        assert '\n' not in answer['error'] and 'Traceback' not in answer['error']
        assert headers['X-Content-Type-Options'] == 'nosniff'
    for content in requests:
        answer = send(server, content)
        if not answer:  # to an empty line there is none
            assert content.startswith(b'\r\n')
            continue
        head, _, body = answer.partition(b'\r\n\r\n')
        assert re.match(rb'HTTP/1.[01] 4\d\d ', head), (content[:80], head[:80])
        answer = json.loads(body)
        assert set(answer) == {'error'} and '\n' not in answer['error'], content[:80]
    assert attack(server, text='a film', methods=['adv'])['records']
    assert capfd.readouterr() == ('', '')


def test_a_body_over_the_limit_is_answered_though_the_client_sends_all_of_it(server):
    status, _, answer = ask(server, body=json.dumps({'text': 'a ' * 1_000_000}))
    assert status == 413 and '100,000 bytes' in answer['error']
    text = ('w' * 45 + ' ') * 2000  # many bytes, few words
    assert len(json.dumps({'text': text})) < explore.MAX_BODY
    assert attack(server, text=text, methods=['adv'])['unknown'] == ['w' * 45] * 2000


@pytest.mark.parametrize('host, accepted', [
    ('localhost', True), ('localhost:1', True), ('LOCALHOST:8765', True), ('127.0.0.1', True),
    ('127.0.0.1:99', True), ('127.1.2.3:8000', True), ('[::1]', True), ('[::1]:8765', True),
    ('example.org', False), ('localhost.example.org', False), ('127.0.0.1.example.org', False),
    ('example.org:8765', False), ('10.0.0.1', False), ('0.0.0.0:8765', False), ('[::2]', False),
    ('localhost@example.org', False), ('example.org#localhost', False), ('localhost:', False),
    ('localhost:x', False), ('', False), ('localhost/', False), ('2130706433', False),
])
def test_only_loopback_names_are_answered(server, host, accepted):
    assert explore.is_loopback(host) == accepted
    for headers in ({'Host': host}, {'Host': 'localhost', 'Origin': f'http://{host}'},
                    {'Host': 'localhost', 'Origin': f'https://{host}'}):
        for method, path, body in (('GET', '/', None), ('GET', '/api/model', None),
                                   ('POST', '/api/attack', '{"text": "a", "methods": ["adv"]}')):
            connection = http.client.HTTPConnection('127.0.0.1', server.server_port)
            connection.request(method, path, body, {**JSON, **headers})
            assert connection.getresponse().status == (200 if accepted else 403), headers
            connection.close()


@pytest.mark.parametrize('origin', ['null', 'file://', 'localhost', 'ftp://localhost', 'http:/',
                                    'http://localhost http://example.org'])
def test_other_origins_are_refused(server, origin):
    headers = {**JSON, 'Origin': origin}
    assert ask(server, body='{"text": "a"}', headers=headers)[0] == 403


def test_a_defect_is_one_line_and_the_server_stays_up(server, monkeypatch, capfd):
    monkeypatch.setattr(explore.records, 'method_name', lambda record: 1 / 0)
    status, _, answer = ask(server, body='{"text": "a film"}')
    assert status == 500 and 'see its output' in answer['error']
    error = capfd.readouterr().err
    assert error.count('\n') == 1 and 'ZeroDivisionError' in error
    monkeypatch.undo()
    assert attack(server, text='a film')


def test_ten_parallel_clients(server, capfd):
    """They queue; every answer is the one that a single client would get."""
    texts = [example['text'] for example in EXAMPLES]
    expected = [attack(server, text=text) for text in texts]
    end = time.monotonic() + SECONDS

    def client(number):
        done = 0
        while time.monotonic() < end or not done:
            which = (number + done) % len(texts)
            assert attack(server, text=texts[which]) == expected[which]
            done += 1
        return done

    with concurrent.futures.ThreadPoolExecutor(10) as pool:
        done = list(pool.map(client, range(10)))
    assert min(done) >= 1
    assert capfd.readouterr() == ('', '')


# The command ------------------------------------------------------------------------------------

def test_command_serves_until_interrupted(run):
    process = subprocess.Popen(
        [sys.executable, '-m', 'interpretable_adv.explore', '--model', str(run / 'run'), '--port',
         '0', '--no_browser'], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))  # tests may ignore it
    try:
        line = process.stdout.readline()
        port = int(re.match(r'http://127\.0\.0\.1:(\d+)/ shows ', line)[1])
        connection = http.client.HTTPConnection('127.0.0.1', port)
        connection.request('GET', '/api/model')
        assert connection.getresponse().status == 200
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        assert (process.returncode, out, err) == (0, 'stopped\n', '')
    finally:
        process.kill()


def test_command_opens_the_page(run, monkeypatch, capsys):
    opened = []

    def interrupt(self):
        raise KeyboardInterrupt

    monkeypatch.setattr(explore.webbrowser, 'open', opened.append)
    monkeypatch.setattr(explore.Server, 'serve_forever', interrupt)
    explore.main(['--model', str(run / 'run'), '--port', '0'])
    assert opened == [capsys.readouterr().out.split()[0]]


@pytest.mark.parametrize('flags, message', [
    (['--model', 'absent'], "'absent'"), (['--lm', 'absent', '--model', 'RUN'], "'absent'"),
    (['--port', '-1'], 'less than 0'), (['--port', 'x'], 'invalid int'),
    (['--port', '70000', '--model', 'RUN'], '--port 70000'), (['--what'], '--what')])
def test_wrong_flags_are_one_line(run, capsys, flags, message):
    with pytest.raises(SystemExit) as caught:
        cli.run(explore.main, [str(run / 'run') if flag == 'RUN' else flag for flag in flags])
    assert caught.value.code == 2
    error = capsys.readouterr().err
    assert error.count('\n') == 1 and message in error


def test_a_port_that_is_taken_is_one_line(run, server):
    with pytest.raises(explore.UserError, match='cannot listen there'):
        explore.main(['--model', str(run / 'run'), '--port', str(server.server_port),
                      '--no_browser'])


# In a browser -----------------------------------------------------------------------------------

SIZES = pytest.mark.parametrize('width, scheme', [
    (1400, 'light'), (1400, 'dark'), (400, 'light'), (400, 'dark')])


def open_page(browser, server, width=1400, scheme='light'):
    browser.open(server.address, width=width, height=900, scheme=scheme, mobile=width < 600)
    browser.wait('document.querySelectorAll("article").length === 3')


def set_value(browser, selector, value, event='input'):
    browser.run(f'(() => {{ const e = document.querySelector({json.dumps(selector)});'
                f' e.value = {json.dumps(value)};'
                f' e.dispatchEvent(new Event("{event}", {{bubbles: true}})); }})()')


def titles(browser):
    return browser.run('[...document.querySelectorAll("article h3")].map((e) => e.textContent)')


def shown(browser, panel):
    return browser.run(f'[...document.querySelectorAll(".word[data-panel=\\"{panel}\\"]")]'
                       '.map((e) => e.textContent)')


@SIZES
def test_type_slide_switch_and_read(server, browser, width, scheme):
    open_page(browser, server, width, scheme)
    press = browser.tap if width < 600 else browser.click
    background = browser.run('getComputedStyle(document.body).backgroundColor')
    assert (sum(map(int, re.findall(r'\d+', background))) > 380) == (scheme == 'light')
    assert browser.run('document.documentElement.scrollWidth') == width

    press('#text')  # type a text
    browser.run('document.getElementById("text").select()')
    text = 'A dull story, but the flumptious music is lovely.'
    browser.type(text)
    browser.wait('document.querySelectorAll(".word[data-panel=\\"0\\"]").length === 9')
    expected = attack(server, text=text)
    assert shown(browser, 0) == [word['word'] for word in expected['records'][0]['words']]
    assert 'flumptious' in browser.run('document.getElementById("unknown").textContent')
    assert expected['prediction'] in browser.run(
        'document.getElementById("prediction").textContent')
    chips = browser.run('[...document.querySelectorAll("article .chip")].map((e) => e.textContent)')
    assert chips == ['flipped' if records.is_flipped(record) else 'unchanged'
                     for record in expected['records']]

    set_value(browser, '#epsilon_spgd', 40)  # move a slider
    browser.wait('document.querySelectorAll(".strength")[2].textContent.startsWith("ε = 40")')
    assert browser.run('document.querySelectorAll(".strength")[0].textContent') == 'ε = 5'
    moved = attack(server, text=text, methods=['spgd'], epsilon=40)['records'][0]
    shades = browser.run('[...document.querySelectorAll(".word[data-panel=\\"2\\"]")]'
                         '.map((e) => Number(e.style.getPropertyValue("--shade")))')
    assert [shade > 0 for shade in shades] == [word['norm'] > 0 for word in moved['words']]
    set_value(browser, '#sparsity', 0)
    browser.wait('document.querySelectorAll(".moved")[2].textContent === "8 of 8 words moved"')

    press('input[value=adv]')  # switch methods
    browser.wait('document.querySelectorAll("article").length === 2')
    assert titles(browser) == ['iAdvT-Text', 'SPGD']
    press('input[value=vat]')
    browser.wait('document.querySelectorAll("article").length === 3')
    press('#reset')
    browser.wait('document.querySelector("article h3").textContent === "AdvT-Text" &&'
                 ' document.querySelectorAll(".strength")[2].textContent.startsWith("ε = 25")')

    expected = attack(server, text=text)['records']
    for reading, field in (('nearest', 'nearest'), ('direction', 'toward'), ('continuous', 'word')):
        press(f'input[value={reading}]')  # switch readings
        for panel, record in enumerate(expected):
            assert shown(browser, panel) == [word[field] for word in record['words']]
        value = expected[0]['perplexity'][reading]
        assert f'{value:,.1f}' in browser.run('document.querySelector(".perplexity").textContent')
    assert browser.run('document.documentElement.scrollWidth') == width
    assert browser.complaints() == []
    assert set(browser.requests()) == {server.address, server.address + 'api/model',
                                       server.address + 'api/attack'}


@SIZES
def test_the_word_card_never_covers_its_panel(server, browser, width, scheme):
    open_page(browser, server, width, scheme)
    record = attack(server, text=EXAMPLES[0]['text'])['records'][1]
    for position in (0, 7, len(record['words']) - 1):
        (browser.tap if width < 600 else browser.click)(WORD.format(1, position))
        rows = browser.run('[...document.querySelectorAll("#card tbody tr")]'
                           '.map((r) => r.cells[0].textContent)')
        assert rows == record['words'][position]['neighbors']
        inline, card, panel, word = browser.run(
            '(() => { const card = document.getElementById("card");'
            ' const word = document.querySelector(".word.open");'
            ' return [card.classList.contains("inline"), ...[card, word.closest("article"), word]'
            '.map((e) => { const b = e.getBoundingClientRect();'
            ' return [b.left, b.right, b.top, b.bottom]; })]; })()')
        assert inline == (width < 600)
        if inline:  # part of the text, under the word's line
            assert card[2] >= word[3] - 1 and panel[2] < card[2] and card[3] <= panel[3]
        else:
            assert card[1] <= panel[0] or card[0] >= panel[1]
        assert card[0] >= 0 and card[1] <= width
        assert word[2] >= -1 and word[3] <= 901
    assert browser.complaints() == []


def test_keyboard(server, browser):
    open_page(browser, server)
    focus = ('(() => { const e = document.activeElement; return e.dataset.panel === undefined ?'
             ' e.id || e.value : e.dataset.panel + "/" + e.dataset.position; })()')
    card = 'document.getElementById("card")'
    seen = []
    for _ in range(60):
        browser.press('Tab')
        seen.append(browser.run(focus))
        if seen[-1] == '0/0':
            break
    for name in ('theme', 'example', 'text', 'target', 'adv', 'iadv', 'spgd', 'reset',
                 'epsilon_spgd', 'sparsity', 'k', 'iterations', 'continuous', 'shared', '0/0'):
        assert name in seen, (name, seen)
    assert not browser.run(f'{card}.hidden')  # reaching a word shows its card
    browser.press('ArrowRight')
    browser.press('ArrowDown')
    assert browser.run(focus) == '1/1'
    assert 'word 2 of' in browser.run(f'{card}.textContent')
    browser.press('Enter')
    browser.press('Escape')
    assert browser.run(f'{card}.hidden') and browser.run(focus) == '1/1'
    browser.run('document.getElementById("k").focus()')
    browser.press('ArrowRight')
    browser.wait('document.querySelectorAll(".strength")[2].textContent.includes("K = 16")')
    outline = browser.run('getComputedStyle(document.getElementById("k")).outlineStyle')
    assert outline != 'none'
    assert browser.complaints() == []


def test_every_control_has_a_name(server, browser):
    open_page(browser, server)
    nameless = browser.run(
        '[...document.querySelectorAll("input, select, textarea, button")].filter((e) =>'
        ' !e.getAttribute("aria-label") && !(e.labels && e.labels.length) && !e.textContent.trim())'
        '.map((e) => e.outerHTML)')
    assert nameless == []


def test_examples_and_a_long_review(server, browser):
    open_page(browser, server)
    assert browser.run('document.getElementById("example").options.length') == 11
    set_value(browser, '#example', '9', 'change')
    browser.wait('document.querySelectorAll(".strip").length === 3')
    position = browser.run('Number(document.querySelector(".most button").dataset.jump)')
    norms = [word['norm'] for word in attack(server, text=EXAMPLES[9]['text'])['records'][0][
        'words'][:-1]]
    assert position == int(np.argmax(norms))
    browser.click('.most button')  # jumps to the most-moved word
    assert browser.run('document.querySelector(".word.open").dataset.position') == str(position)
    assert 0 <= browser.run('document.querySelector(".word.open").getBoundingClientRect().top'
                            ) <= 900
    assert browser.complaints() == []


def test_an_attack_by_swaps_has_no_epsilon(server, browser):
    open_page(browser, server)
    browser.click('input[value=hotflip]')
    browser.wait('document.querySelectorAll("article").length === 4')
    assert browser.run('[...document.querySelectorAll(".slider input[type=range]")]'
                       '.map((e) => e.id)') == [
        'epsilon_adv', 'epsilon_iadv', 'epsilon_spgd', 'sparsity', 'k', 'iterations']
    calls = browser.run('document.getElementById("python").textContent').splitlines()
    assert calls[-1] == 'model.attack([text], method="hotflip", k=15, sparsity=0.75)'
    assert browser.complaints() == []


def test_hostile_text_stays_text(server, browser):
    open_page(browser, server)
    hostile = '<img src=x onerror=alert(1)> </script><b>film</b> &amp; "\'` a'
    set_value(browser, '#text', hostile)
    browser.wait('document.getElementById("unknown").textContent.includes("onerror")')
    assert browser.run('document.querySelectorAll("main img, main p b").length') == 0
    assert json.dumps(hostile) in browser.run('document.getElementById("python").textContent')
    assert browser.complaints() == []


def test_problems_are_shown_and_pass(server, browser):
    open_page(browser, server)
    set_value(browser, '#text', '')
    browser.wait('!document.getElementById("problem").hidden')
    assert browser.run('document.querySelectorAll("article").length') == 0
    set_value(browser, '#text', 'a film')
    browser.wait('document.getElementById("problem").hidden')
    set_value(browser, '.slider input[type=number]', '-3')
    browser.wait('document.getElementById("problem").textContent.includes("epsilon of adv")')
    set_value(browser, '.slider input[type=number]', '3')
    browser.wait('document.getElementById("problem").hidden')
    assert all('400 (Bad Request)' in str(found) for found in browser.complaints())


def test_python_on_the_page_runs(server, browser, run):
    open_page(browser, server)
    code = browser.run('document.getElementById("python").textContent')
    code = code.replace('"run"', repr(str(run / 'run')))
    assert code.count('model.attack(') == 3
    exec(compile(code, 'page', 'exec'), {})
