"""Serves a page on which one types a text and sees what each attack makes of it.

    python -m interpretable_adv.explore [--model M] [--lm L] [--port N] [--no_browser]

    GET  /             the page
    GET  /api/model    the model: classes, methods and their settings
    POST /api/attack   {text, methods, epsilon, sparsity, k, iterations, label} → records

The server listens on 127.0.0.1 only and answers only requests that name a loopback address, on any
port, so that SSH forwarding works. Requests wait for one another: the model answers one at a time.
"""
import http.server
import ipaddress
import json
import math
import re
import socket
import sys
import threading
import time
import webbrowser
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

import interpretable_adv
from interpretable_adv import api, cli, paper, settings
from interpretable_adv.errors import UserError
from interpretable_adv.evaluation import page, records
from interpretable_adv.methods import METHODS

MAX_BODY = 100_000  # bytes
MAX_WORDS = 3000  # longer than any review of IMDB; the page shows each word as a button
MAX_K = 100
SLIDER_K = 30  # the slider ends here; a number beyond may be typed
MAX_ITERATIONS = 50
MAX_EPSILON = 1e6
PORT = 8765
SECONDS_TO_SEND = 20  # after which a client that has not sent its request is given up
FIELDS = ('text', 'methods', 'epsilon', 'sparsity', 'k', 'iterations', 'label')
SHOWN_FIRST = tuple(paper.GAP)  # the methods of Table 1
WARM_UP = 'A film that is neither good nor bad .'


class RefusedError(Exception):
    """A request that is answered by an error: its status and one sentence."""

    def __init__(self, status: HTTPStatus, message: str):
        super().__init__(message)
        self.status = status


def bad(message: str) -> RefusedError:
    return RefusedError(HTTPStatus.BAD_REQUEST, message)


# What the page asks for -------------------------------------------------------------------------

class Explorer:
    """A model, and the answers to the page's two questions; one at a time."""

    def __init__(self, model: api.Model, name: str):
        self._model, self._name = model, name
        self._lock = threading.Lock()
        # One table of neighbours serves every K up to the slider's largest.
        self.attack({'text': WARM_UP, 'k': min(SLIDER_K, self._largest_k())})

    def describe(self) -> dict[str, Any]:
        """`GET /api/model`."""
        model = self._model
        methods = {}
        for name in model.methods:
            row, attack = METHODS[name], model.settings(name)
            uses = [field for field in records.SETTINGS if field in row.all_settings]
            methods[name] = {'title': row.title, 'uses': uses,
                             **{field: getattr(attack, field) for field in uses}}
        return {
            'name': self._name, 'labels': model.labels, 'n_words': len(model.words),
            'trained_by': model.run.get('method'), 'language_model': model.has_lm,
            'methods': methods, 'shown_first': [n for n in SHOWN_FIRST if n in methods],
            'limits': {'words': MAX_WORDS, 'k': self._largest_k(), 'iterations': MAX_ITERATIONS,
                       'epsilon': MAX_EPSILON, 'slider_k': min(SLIDER_K, self._largest_k())},
            'version': interpretable_adv.__version__}

    def attack(self, request: Any) -> dict[str, Any]:
        """`POST /api/attack`: the text's prediction, and a record for each method.

        `shown` has, for each record, what the page shows of it besides.
        """
        text, methods, label, options = self._checked(request)
        with self._lock:
            prediction, = self._model.predict([text])
            try:
                attacks = [self._model.attack(
                    [text], method, None if label is None else [label],
                    **{name: value.get(method) if isinstance(value, dict) else value
                       for name, value in options.items()})[0] for method in methods]
            except ValueError as error:
                raise bad(str(error)) from error
            found = [attack.to_dict() for attack in attacks]
        return {
            'prediction': prediction.label, 'probabilities': prediction.probabilities,
            'unknown': prediction.unknown, 'records': found,
            'shown': [{
                'title': records.method_name(record), 'hue': records.attack_hue(record),
                'note': records.why_nothing_moved(record),
                'readings': {name: read.label for name, read in attack.readings.items()},
            } for attack, record in zip(attacks, found)]}

    def _largest_k(self) -> int:
        """K that neither the vocabulary nor the page's room for neighbours forbids."""
        return min(MAX_K, self._model.largest_k)

    def _checked(self, request: Any) -> tuple[str, list[str], Any, dict[str, Any]]:
        if not isinstance(request, dict):
            raise bad(f'send an object with any of {", ".join(FIELDS)}')
        for name in request:
            if name not in FIELDS:
                raise bad(f'{name[:40]!r} is no field: send any of {", ".join(FIELDS)}')
        text = request.get('text')
        if not isinstance(text, str) or not text.strip():
            raise bad('text is missing: send a text of at least one word')
        try:
            text.encode('utf-8')
        except UnicodeEncodeError:
            raise bad('text holds half of a surrogate pair: send valid Unicode') from None
        if len(text.split()) > MAX_WORDS:
            raise bad(f'text has {len(text.split()):,} words: send at most {MAX_WORDS:,}')
        methods = self._methods(request.get('methods'))
        label = request.get('label')
        if label is not None and (isinstance(label, (bool, float))
                                  or not isinstance(label, (str, int))):
            raise bad(f'label is not one of {", ".join(self._model.labels)}')
        options = {
            'epsilon': self._epsilon(request.get('epsilon')),
            'sparsity': _number(request.get('sparsity'), 'sparsity', 0, 1),
            'k': _number(request.get('k'), 'k', 1, self._largest_k(), whole=True),
            'iterations': _number(request.get('iterations'), 'iterations', 1, MAX_ITERATIONS,
                                  whole=True)}
        return text, methods, label, options

    def _methods(self, names: Any) -> list[str]:
        offered = self._model.methods
        if names is None:
            return [name for name in SHOWN_FIRST if name in offered]
        if not isinstance(names, list) or not names or not all(
                isinstance(name, str) and name in offered for name in names):
            raise bad(f'methods is not a list with any of {", ".join(offered)}')
        return list(dict.fromkeys(names))

    def _epsilon(self, value: Any) -> Any:
        """One number for all methods, or an object with a number for some."""
        if not isinstance(value, dict):
            return _number(value, 'epsilon', 0, MAX_EPSILON)
        for name in value:
            if name not in self._model.methods:
                raise bad(f'epsilon names {name[:40]!r}: send a number for any of '
                          + ', '.join(self._model.methods))
        return {name: _number(number, f'epsilon of {name}', 0, MAX_EPSILON)
                for name, number in value.items()}


def _number(value: Any, name: str, low: float, high: float, whole: bool = False) -> Any:
    """A number of a request, None where it is absent."""
    if value is None:
        return None
    right = isinstance(value, int) if whole else isinstance(value, (int, float))
    if not right or isinstance(value, bool) or not low <= value <= high:
        kind = 'a whole number' if whole else 'a number'
        raise bad(f'{name} is not {kind} from {low:g} to {high:g}')
    return value


def parse(body: bytes) -> Any:
    """The JSON of a request; NaN, infinities and repeated names are refused."""
    def refuse(literal: str) -> None:
        raise ValueError(f'{literal} is no JSON')

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(pairs)) < len(pairs):
            raise ValueError('a name is repeated')
        return dict(pairs)

    def finite(digits: str) -> float:
        value = float(digits)
        if not math.isfinite(value):
            raise ValueError('a number is too large')
        return value

    try:
        return json.loads(body.decode('utf-8'), parse_constant=refuse, parse_float=finite,
                          object_pairs_hook=unique)
    except UnicodeDecodeError:
        raise bad('the body is not UTF-8') from None
    except RecursionError:
        raise bad('the body is nested too deeply') from None
    except ValueError as error:
        raise bad(f'the body is not JSON: {str(error)[:100]}') from None


# The server -------------------------------------------------------------------------------------

def is_loopback(host: str) -> bool:
    """Whether `host[:port]`, as a Host header has it, names this machine itself."""
    found = re.fullmatch(r'(\[[0-9a-f:.]+\]|[a-z0-9.-]+)(:[0-9]{1,5})?', host, re.IGNORECASE)
    if found is None:
        return False
    name = found[1].strip('[]')
    try:
        return name.lower() == 'localhost' or ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers one request, errors as JSON in one sentence."""

    protocol_version = default_request_version = 'HTTP/1.1'  # so that every answer has a status
    server_version, sys_version = 'interpretable_adv', ''
    timeout = SECONDS_TO_SEND
    server: 'Server'

    def do_GET(self) -> None:  # noqa: N802 (the name that http.server calls)
        self._answer()

    do_HEAD = do_POST = do_PUT = do_DELETE = do_PATCH = do_OPTIONS = do_GET  # noqa: N815

    def _answer(self) -> None:
        try:
            if len(self.requestline.split()) != 3:
                raise bad('the request line names no version: use HTTP/1.1')
            self._refuse_strangers()
            path = self.path.partition('?')[0]
            if path not in ('/', '/api/model', '/api/attack'):
                raise RefusedError(HTTPStatus.NOT_FOUND, 'there are /, /api/model and /api/attack')
            allowed = ('POST',) if path == '/api/attack' else ('GET', 'HEAD')
            if self.command not in allowed:
                raise RefusedError(HTTPStatus.METHOD_NOT_ALLOWED, f'{path} takes {allowed[0]} only')
            if path == '/':
                self._send(HTTPStatus.OK, 'text/html', self.server.page.text.encode())
            elif path == '/api/model':
                self._send_json(HTTPStatus.OK, self.server.explorer.describe())
            else:
                self._send_json(HTTPStatus.OK, self.server.explorer.attack(parse(self._body())))
        except RefusedError as error:
            self._send_error(error.status, str(error))
        except OSError:  # the client has gone
            self.close_connection = True
        except Exception as error:  # a defect, which must not end the server
            print(f'error: {type(error).__name__} while answering {self.path[:80]!r}: {error}',
                  file=sys.stderr)
            self._send_error(HTTPStatus.INTERNAL_SERVER_ERROR, 'the server failed; see its output')

    def _refuse_strangers(self) -> None:
        """Another site's page must not use this server through the user's browser."""
        hosts, origins = self.headers.get_all('Host', []), self.headers.get_all('Origin', [])
        if len(hosts) != 1 or not is_loopback(hosts[0]):
            raise RefusedError(HTTPStatus.FORBIDDEN, 'Host is not a loopback name: use 127.0.0.1')
        for origin in origins:
            scheme, _, host = origin.partition('://')
            if len(origins) > 1 or scheme not in ('http', 'https') or not is_loopback(host):
                raise RefusedError(HTTPStatus.FORBIDDEN, 'Origin is not a loopback name')

    def _body(self) -> bytes:
        if 'Transfer-Encoding' in self.headers:
            raise RefusedError(HTTPStatus.LENGTH_REQUIRED, 'send a Content-Length')
        lengths = self.headers.get_all('Content-Length', [])
        if not lengths:
            raise RefusedError(HTTPStatus.LENGTH_REQUIRED, 'send a Content-Length')
        if len(lengths) > 1 or not (lengths[0].isascii() and lengths[0].isdigit()):
            raise bad('Content-Length is not a number')
        if len(lengths[0]) > 9 or int(lengths[0]) > MAX_BODY:
            raise RefusedError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                          f'the body is too long: send at most {MAX_BODY:,} bytes')
        if self.headers.get_content_type() != 'application/json':
            raise RefusedError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, 'send application/json')
        body = self.rfile.read(int(lengths[0]))
        if len(body) < int(lengths[0]):
            raise bad('the body is shorter than its Content-Length')
        return body

    def _send_error(self, status: HTTPStatus, message: str) -> None:
        self.close_connection = True  # a body that was not read would be taken for a request
        try:
            self._send_json(status, {'error': message})
            self._linger()
        except OSError:
            pass

    def _linger(self) -> None:
        """Reads what the client still sends: closed at once, it might never see the answer."""
        self.wfile.flush()
        self.connection.shutdown(socket.SHUT_WR)
        self.connection.settimeout(1)
        deadline, left = time.monotonic() + SECONDS_TO_SEND, 100 * MAX_BODY
        while left > 0 and time.monotonic() < deadline:
            received = self.connection.recv(1 << 16)
            if not received:
                break
            left -= len(received)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What `http.server` itself refuses: malformed lines, unknown methods and versions."""
        status = HTTPStatus.BAD_REQUEST if code >= 500 else HTTPStatus(code)
        self._send_error(status, message or status.phrase)

    def _send_json(self, status: HTTPStatus, value: Any) -> None:
        text = json.dumps(value, ensure_ascii=False, separators=(',', ':'), allow_nan=False)
        self._send(status, 'application/json', text.encode())

    def _send(self, status: HTTPStatus, kind: str, content: bytes) -> None:
        self.send_response(status)
        for name, value in (
                ('Content-Type', f'{kind}; charset=utf-8'), ('Content-Length', str(len(content))),
                ('Content-Security-Policy', self.server.page.policy),
                ('X-Content-Type-Options', 'nosniff'), ('X-Frame-Options', 'DENY'),
                ('Referrer-Policy', 'no-referrer'), ('Cache-Control', 'no-store'),
                ('Cross-Origin-Resource-Policy', 'same-origin'),
                *([('Connection', 'close')] if self.close_connection else [])):
            self.send_header(name, value)
        self.end_headers()
        if self.command != 'HEAD':
            self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """The terminal stays quiet."""


class Server(http.server.ThreadingHTTPServer):
    """Serves a model's page.

    Attributes:
        explorer: answers the page's questions.
        page: the page itself.
    """

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, explorer: Explorer, port: int):
        self.explorer = explorer
        examples = json.loads((page.ASSETS / 'examples.json').read_text(encoding='utf-8'))
        self.page = page.render('explore.html', {'examples': examples}, "connect-src 'self'",
                                "frame-ancestors 'none'")
        try:
            super().__init__(('127.0.0.1', port), Handler)
        except (OSError, OverflowError) as error:
            raise UserError(f'--port {port}: cannot listen there ({error}); give another, or 0 '
                            'for any that is free') from error

    @property
    def address(self) -> str:
        return f'http://127.0.0.1:{self.server_port}/'

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A connection that broke is no event; `Handler` reports everything else."""

    def server_bind(self) -> None:
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        super().server_bind()


# The command ------------------------------------------------------------------------------------

def make_parser() -> cli.ArgumentParser:
    parser = cli.ArgumentParser(prog='python -m interpretable_adv.explore',
                                description=__doc__.partition('\n')[0])
    add = parser.add_argument
    add('--model', default='demo', metavar='M',
        help="a run's folder, its best.model, or demo, the embedded classifier")
    add('--lm', default='', metavar='L', help="a language model's run, for perplexities")
    add('--port', type=cli.at_least(0), default=PORT, metavar='N', help='0: any that is free')
    add('--no_browser', action='store_true', help='do not open the page')
    settings.add(parser, 'device')
    return parser


def main(argv: Sequence[str] | None = None) -> None:
    flags = make_parser().parse_args(argv)
    model = api.load(flags.model, lm=flags.lm or None, device=flags.device)
    with Server(Explorer(model, flags.model), flags.port) as server:
        print(f'{server.address} shows {flags.model} ({len(model.words):,} words); Ctrl-C ends it',
              flush=True)
        if not flags.no_browser:
            webbrowser.open(server.address)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print('stopped', flush=True)


def command() -> None:
    cli.run(main)


if __name__ == '__main__':
    command()
