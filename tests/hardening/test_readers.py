"""A fixed sample of the campaign; `bash tests/hardening.sh` runs new cases."""
import faulthandler
import json
import os
import subprocess
import sys

from tests.hardening import campaign

CASES = 2000


def test_no_damaged_file_gets_through(root):
    done = subprocess.run(
        [sys.executable, '-m', 'tests.hardening', str(CASES), '--seed', 'suite', '--batch', '25',
         '--json'], cwd=root, capture_output=True, text=True,
        env={**os.environ, 'OMP_NUM_THREADS': '1', 'OPENBLAS_NUM_THREADS': '1'})
    assert done.returncode == 0, done.stderr[-5000:]
    found = json.loads(done.stdout)
    assert sum(found.values()) == CASES
    assert found['refused'] > CASES / 2 and not any(found[name] for name in campaign.DEFECTS)


def test_a_defect_is_counted(monkeypatch):
    """The campaign itself: exceptions, hangs, crashes and wrong results are told from refusals."""
    class Broken(campaign.targets.Target):
        def damage(self, random, folder):
            self.kind = random.randrange(4)

        def read(self, folder):
            faulthandler.disable()  # pytest's would show the death that is wanted here
            [lambda: 1 / 0, lambda: os.kill(os.getpid(), 11), lambda: os.kill(os.getpid(), 14),
             lambda: os.write(2, b'Traceback (most recent call last)')][self.kind]()

    monkeypatch.setitem(campaign.targets.TARGETS, 'Broken', Broken)
    count = campaign.Count(lambda text: None)
    campaign.run([('Broken', str(number)) for number in range(20)], count, batch=5)
    assert all(count.total[name] for name in ('unexpected', 'crash', 'hang', 'traceback'))
    assert count.defects == 20
