"""Memory that a long run frees and needs again in every step."""
import ctypes
import sys

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
