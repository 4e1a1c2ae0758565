"""Parallel streams through a long text."""
import numpy as np


class Streams:

    def __init__(self, words, batchsize):
        self.words, self.batchsize = words, batchsize
        self.starts = np.arange(batchsize) * len(words) // batchsize
        self.position = 0

    def window(self, length):
        here = self.starts[:, None] + self.position + np.arange(length)
        self.position += length
        return self.words[here % len(self.words)], self.words[(here + 1) % len(self.words)]

    @property
    def epoch(self):
        return self.position * self.batchsize // len(self.words)
