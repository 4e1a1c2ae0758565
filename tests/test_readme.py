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
        prediction, change, text, *words = done.stdout.splitlines()
        assert prediction.startswith("Prediction(label='positive', probabilities={'negative': 0.")
        assert change.startswith('positive → ')
        assert text != 'A slow start, but the acting is superb and the ending is wonderful.'
        assert 1 <= len(words) <= 4 and all(' → ' in line for line in words)
    assert list(tmp_path.iterdir()) == []
