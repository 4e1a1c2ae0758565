"""Builds the C kernels with sanitisers: python -m tests.sanitized COPY

COPY is a copy of the repository. The plain variant has the tiling of AVX-512 there, so that this
code is run on any processor.
"""
import pathlib
import subprocess
import sys

SOURCES = ('plain.c', 'avx2.c', 'avx512.c', 'kernels.c', 'threads.c')


def build(root):
    folder = pathlib.Path(root) / 'interpretable_adv' / 'nn' / 'kernels'
    subprocess.run(
        ['gcc', '-O1', '-std=gnu11', '-pthread', '-shared', '-fPIC', '-ffp-contract=off',
         '-fno-math-errno', '-fsanitize=address,undefined', '-fno-sanitize-recover=all',
         '-Wall', '-Wextra', '-Werror', '-Wno-psabi', '-DPLAIN_LANES=16',
         '-DPLAIN_TILE_VECTORS=4', '-DPLAIN_PRODUCT_ROWS=12',
         *(folder / name for name in SOURCES), '-o', folder / '_kernels.so'], check=True)


if __name__ == '__main__':
    build(sys.argv[1])
