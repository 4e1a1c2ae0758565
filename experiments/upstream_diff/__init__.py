"""Compares this port with a clone of upstream, or with recordings of one.

    bash experiments/diff_upstream.sh PATH_TO_CLONE

A clone is first turned into recordings, a folder of what upstream computed, in a process of its
own (`record`, `recorder`, `stand_ins`). Another process computes the same here (`ours`). The rest
compares: `files`, `flags`, `checkpoints`, `numbers`, `known`; `report` prints.
"""
