"""setup.py: the console scripts lead somewhere."""
import importlib
import re

import pytest

SCRIPT = re.compile(r"'(spgd-\w+) = ([\w.]+):(\w+)'")


def test_every_command_has_a_console_script(root):
    scripts = SCRIPT.findall((root / 'setup.py').read_text(encoding='utf-8'))
    assert {module for _, module, _ in scripts} == {
        'interpretable_adv.data.__main__', 'interpretable_adv.train', 'interpretable_adv.evaluate',
        'interpretable_adv.predict', 'interpretable_adv.analysis', 'interpretable_adv.visualize',
        'interpretable_adv.robustness', 'interpretable_adv.explore', 'lm.pretrain',
        'lm.perplexity'}


@pytest.mark.parametrize('name', ['interpretable_adv.data.__main__', 'interpretable_adv.train',
                                  'interpretable_adv.evaluate', 'interpretable_adv.predict',
                                  'interpretable_adv.analysis', 'interpretable_adv.visualize',
                                  'interpretable_adv.robustness', 'interpretable_adv.explore',
                                  'lm.pretrain', 'lm.perplexity'])
def test_console_scripts_run_their_command(monkeypatch, capsys, name):
    module = importlib.import_module(name)
    monkeypatch.setattr('sys.argv', ['spgd', '--no_such_flag'])
    with pytest.raises(SystemExit) as exit_:
        module.command()
    assert exit_.value.code == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_readme_has_one_line_that_installs(root):
    text = (root / 'README.md').read_text(encoding='utf-8')
    line, = re.findall(r'^PIP_.* pip install \.$', text, re.M)
    for name in re.findall(r'PIP_\w+=(\S+)', line):
        lines = (root / name).read_text(encoding='utf-8').splitlines()
        assert [entry for entry in lines if not entry.startswith('#')] == ['setuptools>=70.1,<74']


def test_constraints_pin_every_requirement(root):
    names = [{re.match(r'[\w-]+', line)[0] for line in (root / name).read_text().splitlines()
              if not line.startswith('#')} for name in ('requirements.txt', 'constraints.txt')]
    assert names[0] <= names[1]
