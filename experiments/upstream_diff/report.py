"""Prints what was compared."""
import json
import math
import textwrap

MARKS = {True: 'ok', False: 'DIFFERS', None: ''}


def show(head, sections):
    """The lines of the terminal report, the last of which is `agrees` or `differs`.

    Args:
        head: lines to begin with.
    """
    yield from head
    for section in sections:
        yield ''
        mark = 'differs' if not section.agrees else (
            'agrees' if any(check.agrees for check in section.checks) else '')
        yield section.title + (f': {mark}' if mark else '')
        if section.note:
            yield f'  ({section.note})'
        for check in section.checks:
            yield from _lines(check)
    yield ''
    yield 'agrees' if agrees(sections) else 'differs'


def agrees(sections):
    return all(section.agrees for section in sections)


def _lines(check):
    text = f'  {MARKS[check.agrees]:<7} {check.name}'
    if check.difference is not None:
        text += f': largest difference {check.difference:.2g}, allowed {check.tolerance:g}'
        if check.detail:
            text += f'; {check.detail}'
    elif check.detail:
        text += f': {check.detail}'
    for number, part in enumerate(text.split('\n')):
        first = ' ' * 10 if number else ''
        yield from textwrap.wrap(part, 110, initial_indent=first, subsequent_indent=' ' * 12,
                                 break_long_words=False, break_on_hyphens=False) or ['']


def as_json(head, sections):
    """The same for machines."""
    return json.dumps({
        'agrees': agrees(sections), 'about': head,
        'sections': [{'title': section.title, 'agrees': section.agrees, 'note': section.note,
                      'checks': [_values(check) for check in section.checks]}
                     for section in sections]}, indent=1, ensure_ascii=False)


def _values(check):
    values = check._asdict()
    if values['difference'] is not None and not math.isfinite(values['difference']):
        values['difference'] = None  # JSON has no infinity; `agrees` tells
    return values
