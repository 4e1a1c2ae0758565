"""`python -m strict_cupy MODULE ARGUMENTS…` runs MODULE as a command with the stand-in."""
import runpy
import sys

from . import install

install()
sys.argv = sys.argv[1:]
runpy.run_module(sys.argv[0], run_name='__main__', alter_sys=True)
