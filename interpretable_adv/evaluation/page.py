"""Pages that are one file each: style, script and data inlined, nothing loaded from elsewhere.

`assets/` holds the pages and what they share. `components.css` and `components.js` draw the panels
of words and the word card, in the report and on the live page alike.
"""
import base64
import hashlib
import json
import pathlib
import re
from typing import Any, NamedTuple

ASSETS = pathlib.Path(__file__).with_name('assets')


class Page(NamedTuple):
    """A page, and the content security policy that admits its own style and script only."""

    text: str
    policy: str


def render(name: str, data: Any, *extra: str) -> Page:
    """A page of `assets` with its data.

    Args:
        name: of the file.
        data: what the page's script finds in the element `data`.
        extra: directives that its policy needs besides.
    """
    text = re.sub('@@include (.*?)@@', lambda found: _read(found[1]), _read(name))
    policy = '; '.join(["default-src 'none'", _allow('style', text), _allow('script', text),
                        'img-src data:', "base-uri 'none'", "form-action 'none'", *extra])
    before, after = text.replace('@@POLICY@@', policy).split('@@DATA@@')
    return Page(before + embed(data) + after, policy)


def embed(value: Any) -> str:
    """JSON that is safe inside a `<script>`: nothing in it can end the element or open one."""
    text = json.dumps(value, ensure_ascii=False, separators=(',', ':'), allow_nan=False)
    for character in '<>&\u2028\u2029':
        text = text.replace(character, f'\\u{ord(character):04x}')
    return text


def _read(name: str) -> str:
    return (ASSETS / name).read_text(encoding='utf-8')


def _allow(kind: str, text: str) -> str:
    """The directive for the page's elements `<style>` or `<script>`, by their hashes."""
    digests = [hashlib.sha256(body.encode()).digest()
               for body in re.findall(f'<{kind}>(.*?)</{kind}>', text, re.DOTALL)]
    sources = ' '.join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)
    return f'{kind}-src {sources}'
