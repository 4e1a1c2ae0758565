"""A training run: its folder, checkpoints, extensions, progress, devices and processes."""
