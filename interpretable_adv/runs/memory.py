"""Memory that a long run frees and needs again in every step."""
import ctypes
import os
import resource
import sys

from interpretable_adv.errors import UserError

# Options of glibc's mallopt, from malloc.h.
_TRIM_THRESHOLD, _TOP_PAD, _MMAP_MAX = -1, -2, -4


def keep_freed_memory():
    """Makes the C library reuse freed memory instead of giving it back to the system.

    A training step frees and asks for hundreds of megabytes. By default each large array gets
    fresh pages, which the system fills with zeros first; that took a tenth of the time. The
    process then stays as large as its largest step. Only commands do this, as it concerns the
    whole process; nothing happens where the C library is not glibc.

    Returns:
        Whether it was possible.
    """
    if not sys.platform.startswith('linux'):
        return False
    library = ctypes.CDLL(None)
    if not hasattr(library, 'gnu_get_libc_version'):
        return False
    return bool(library.mallopt(_MMAP_MAX, 0)
                and library.mallopt(_TRIM_THRESHOLD, 2**31 - 1)
                and library.mallopt(_TOP_PAD, 64 * 2**20))


def check(parameters, activations, flags):
    """Refuses a model that cannot fit, before anything is allocated.

    Systems promise more memory than they have, and kill the process that uses it.

    Args:
        parameters: how many numbers are trained; each has at least two moments beside it.
        activations: numbers that a step keeps for its gradient, at the least.
        flags: that decide on them.
    """
    wanted, available = 4 * (3 * parameters + activations), total()
    if wanted > available:
        raise UserError(f'the model needs more than {wanted / 2**30:,.0f} GB of memory, and there '
                        f'are {available / 2**30:,.0f} GB: choose smaller {flags}')


def lstm_numbers(n_vocab, n_units_word, n_units, n_layers):
    """Parameters of word vectors and an LSTM."""
    inputs = n_units_word + (n_layers - 1) * n_units
    return n_vocab * n_units_word + 4 * n_units * (inputs + n_layers * (n_units + 2))


def kept_per_word(n_units_word, n_units, n_layers):
    """Numbers that an LSTM keeps of each word: its vector; four gates, cell and output a layer."""
    return n_units_word + 6 * n_layers * n_units


def total():
    """Bytes of memory that this process may have."""
    machine = os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE')
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    return machine if limit == resource.RLIM_INFINITY else min(machine, limit)
