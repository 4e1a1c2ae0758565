"""Building blocks of the networks, with a fast path on the CPU: the same numbers as Chainer's."""
