"""Package metadata. README.md says how to install."""
import pathlib
import re

from setuptools import Extension, find_packages, setup

HERE = pathlib.Path(__file__).parent


def requirements(name):
    lines = (HERE / name).read_text(encoding='utf-8').splitlines()
    return [line for line in lines if line and not line.startswith('#')]


# Optional: without a compiler the build succeeds, and NumPy does the work. The flag keeps the
# compiler from fusing products and sums where the kernels mean NumPy's rounding.
KERNELS = 'interpretable_adv/nn/kernels/'
kernels = Extension(
    'interpretable_adv.nn.kernels._kernels',
    sources=[KERNELS + name for name in (
        'plain.c', 'avx2.c', 'avx512.c', 'kernels.c', 'threads.c')],
    depends=[KERNELS + name for name in (
        'kernels.h', 'threads.h', 'variant.h', 'vector.h', 'functions.h', 'lanes.h', 'lstm.c',
        'product.c', 'elementwise.c', 'softmax.c', 'row_sums.c', 'column_sums.c', 'square_sum.c',
        'segment_sum.c', 'dots.c', 'combine.c', 'directions.c', 'top_k.c', 'adam.c',
        'dropout.c')],
    extra_compile_args=['-O3', '-std=gnu11', '-pthread', '-ffp-contract=off',
                        '-fno-math-errno', '-fno-trapping-math'],
    extra_link_args=['-pthread'],
    optional=True)

setup(
    name='interpretable-adv-spgd',
    version=re.search(r"__version__ = '(.+)'",
                      (HERE / 'interpretable_adv/__init__.py').read_text(encoding='utf-8'))[1],
    description='Interpretable adversarial training for text: SPGD, AdvT, iAdvT, VAT and iVAT',
    long_description=(HERE / 'README.md').read_text(encoding='utf-8'),
    long_description_content_type='text/markdown',
    license='MIT',
    python_requires='>=3.11,<3.14',
    packages=find_packages(include=['interpretable_adv', 'interpretable_adv.*', 'lm']),
    package_data={'interpretable_adv': ['py.typed', 'demo/*'],
                  'interpretable_adv.evaluation': ['assets/*'],
                  'interpretable_adv.nn.kernels': ['*.c', '*.h']},
    ext_modules=[kernels],
    install_requires=requirements('requirements.txt'),
    extras_require={
        # cuDNN is optional: pip install 'nvidia-cudnn-cu12<9'
        'gpu': ['cupy-cuda12x==13.6.0'],
        'mpi': ['mpi4py>=4', 'mpich>=4'],
        'dev': requirements('requirements-dev.txt'),
    },
    entry_points={'console_scripts': [
        'spgd-data = interpretable_adv.data.__main__:command',
        'spgd-train = interpretable_adv.train:command',
        'spgd-evaluate = interpretable_adv.evaluate:command',
        'spgd-predict = interpretable_adv.predict:command',
        'spgd-analysis = interpretable_adv.analysis:command',
        'spgd-robustness = interpretable_adv.robustness:command',
        'spgd-visualize = interpretable_adv.visualize:command',
        'spgd-explore = interpretable_adv.explore:command',
        'spgd-pretrain = lm.pretrain:command',
        'spgd-perplexity = lm.perplexity:command',
    ]},
)
