import interpretable_adv.compat  # noqa: F401 (what Chainer needs before a test imports it)
