#!/usr/bin/env bash
# Table 2: statistics of the corpus, next to the paper's.
exec bash "$(dirname "${BASH_SOURCE[0]}")/run.sh" table2 "$@"
