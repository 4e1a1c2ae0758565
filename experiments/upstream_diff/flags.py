"""Compares the flags of the four commands."""
import importlib
import json
import os

from experiments.upstream_diff.checks import Check, Section
from experiments.upstream_diff.record import describe

COMMANDS = {
    'train.py': 'interpretable_adv.train',
    'pretrain.py': 'lm.pretrain',
    'analysis.py': 'interpretable_adv.analysis',
    'visualize.py': 'interpretable_adv.visualize',
}


def compare(recordings):
    """A section per command: missing and changed flags differ, added ones are only listed."""
    theirs = {}
    if os.path.exists(recordings.path('upstream_cli.json')):
        with open(recordings.path('upstream_cli.json'), encoding='utf-8') as stream:
            theirs = json.load(stream)
    sections = []
    for program, module in COMMANDS.items():
        title = f'Flags of {program} and python -m {module}'
        if program in theirs:
            checks = list(compare_one(theirs[program], parser_of(module)))
        else:
            why = recordings.errors.get(f'flags_{program}')
            checks = [Check(program, False, f'its flags cannot be read: {why}') if why
                      else Check(program, None, 'not in this revision')]
        sections.append(Section(title, checks))
    return sections


def parser_of(module):
    """The argument parser that one of our commands builds."""
    return importlib.import_module(module).make_parser()


def compare_one(theirs, parser):
    """
    Args:
        theirs: upstream's flags, in the layout of the recordings.
        parser: ours.
    """
    ours = {flag: action for action in parser._actions for flag in action.option_strings}
    known = {flag for entry in theirs for flag in entry['flags']}
    good = 0
    for entry in theirs:
        problems = list(_problems(entry, ours))
        good += not problems
        for problem in problems:
            yield Check(entry['flags'][0], False, problem)
    yield Check(f'{good} of {len(theirs)} flags', good == len(theirs) or None,
                'same names, types, defaults and choices')
    lost = list(_lost_abbreviations(known, parser, ours))
    yield Check('abbreviations', not lost, 'all of upstream\'s still mean the same' if not lost
                else f'another meaning or none: {", ".join(lost[:5])}')
    added = [flag for flag, action in ours.items()
             if flag.startswith('--') and not known & set(action.option_strings)
             and flag != '--help']
    yield Check(f'{len(added)} added here', None, ', '.join(added))


def _problems(entry, ours):
    name = entry['flags'][0]
    missing = [flag for flag in entry['flags'] if flag not in ours]
    if missing:
        yield f'missing here: {", ".join(missing)}'
    action = next((ours[flag] for flag in entry['flags'] if flag in ours), None)
    if action is None:
        return
    here = describe(action)
    if ('action' in entry) != ('action' in here):
        yield f'{name} is a switch on one side only'
        return
    if 'action' in entry:
        if action.default:
            yield f'{name} is on by default here'
        return
    # A flag without a type is text; visible only where it is converted.
    type_there, type_here = entry.get('type', 'str'), here.get('type', 'str')
    if type_there != type_here:
        yield f'changed type: {type_there} upstream, {type_here} here'
    if entry.get('default') != action.default:
        yield f'changed default: {entry.get("default")!r} upstream, {action.default!r} here'
    if 'choices' in entry and not set(entry['choices']) <= set(here.get('choices') or
                                                               entry['choices']):
        lost = sorted(set(entry['choices']) - set(here['choices']))
        yield f'choices that are missing here: {", ".join(map(str, lost))}'


def _lost_abbreviations(known, parser, ours):
    """Beginnings that mean one flag upstream, and here another or none."""
    long_names = sorted(flag for flag in known if flag.startswith('--'))
    for flag in long_names:
        for end in range(3, len(flag)):
            short = flag[:end]
            meant = [name for name in long_names if name.startswith(short)]
            if len(meant) > 1 or short in known or flag not in ours:
                continue
            if short in ours:
                found = {id(ours[short])}
            else:
                found = {id(match[0]) for match in parser._get_option_tuples(short)}
            if found != {id(ours[flag])}:
                yield short
