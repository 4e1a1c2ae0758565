"""Damaged inputs for every reader, in forked children with limits of time and memory.

`python -m tests.hardening N` runs N cases; `bash tests/hardening.sh N` adds the sanitisers.
`mutations` damages files, `targets` knows the readers and what they may make of a damaged file,
`campaign` runs the cases and counts how they end.
"""
