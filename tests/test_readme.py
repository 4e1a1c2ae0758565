"""README's Python examples run as they are, in an empty folder."""
import os
import re
import subprocess
import sys

import pytest


def examples(page):
    return re.findall(r'^```python\n(.*?)^```', page.read_text(encoding='utf-8'), re.M | re.S)


@pytest.mark.parametrize('number', [0, 1])
def test_an_example_runs_verbatim(root, tmp_path, number):
    code = examples(root / 'README.md')
    assert len(code) == 2
    done = subprocess.run([sys.executable, '-c', code[number]], cwd=tmp_path, text=True,
                          capture_output=True, timeout=300,
                          env={**os.environ, 'PYTHONPATH': str(root), 'PYTHONIOENCODING': 'utf-8'})
    assert done.returncode == 0 and done.stderr == '', done.stderr
    if 'ia.load' in code[number]:
        prediction, *others = done.stdout.splitlines()
        assert re.match(r"Prediction\(label='positive', .* 'positive': 0\.77[5-9]", prediction)
        for comment in ('positive → negative', 'the handsome film with a weak ending.',
                        'charming → handsome, by 3.85'):
            assert comment in others and f'# {comment}\n' in code[number]
    assert list(tmp_path.iterdir()) == []
