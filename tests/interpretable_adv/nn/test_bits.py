"""The kernels' bits where Python does not run: on ARM, and on processors without FMA.

`bits.c` prints a digest of every kernel's results. Whatever processor it is compiled for or run
on, it prints the same; emulators stand in for the processors.
"""
import pathlib
import platform
import shutil
import subprocess

import pytest

from interpretable_adv.nn import kernels

SOURCES = pathlib.Path(kernels.__file__).parent
RECORDED = pathlib.Path(__file__).with_name('bits.txt')


def build(compiler, program):
    if shutil.which(compiler) is None:
        pytest.skip(f'there is no {compiler}')
    subprocess.run(
        [compiler, '-O1', '-std=gnu11', '-pthread', '-static', '-ffp-contract=off',
         '-fno-math-errno', '-fno-trapping-math', f'-I{SOURCES}',
         *(SOURCES / f'{name}.c' for name in ('plain', 'avx2', 'avx512', 'kernels', 'threads')),
         pathlib.Path(__file__).with_name('bits.c'), '-lm', '-o', program], check=True)
    return program


@pytest.fixture(scope='module')
def here(tmp_path_factory):
    return build('gcc', tmp_path_factory.mktemp('bits') / 'bits')


@pytest.fixture(scope='module')
def on_arm(tmp_path_factory):
    return build('aarch64-linux-gnu-gcc', tmp_path_factory.mktemp('bits') / 'bits')


def check(*command):
    if shutil.which(command[0]) is None:
        pytest.skip(f'there is no {command[0]}')
    printed = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                             check=True).stdout
    if printed == 'not here\n':
        pytest.skip('this processor does not have it')
    assert printed == RECORDED.read_text()


@pytest.mark.parametrize('variant', kernels.VARIANTS)
@pytest.mark.parametrize('threads', ['1', '2', '5'])
def test_here(here, variant, threads):
    check(here, variant, threads)


@pytest.mark.parametrize('processor', ['Nehalem', 'Haswell'])  # without FMA, and with AVX2
def test_other_x86_processors(here, processor):
    if platform.machine() != 'x86_64':
        pytest.skip('this is no x86 processor')
    check('qemu-x86_64', '-cpu', processor, here)


@pytest.mark.parametrize('threads', ['1', '3'])
def test_arm(on_arm, threads):
    check('qemu-aarch64', on_arm, 'plain', threads)
