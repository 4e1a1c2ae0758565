#!/usr/bin/env bash
# Table 1: perplexity of test reviews under each attack. Trains what is not trained yet.
#   PRESET=small bash experiments/table1.sh [--dry_run] [perplexity.n_samples=500 …]
exec bash "$(dirname "${BASH_SOURCE[0]}")/run.sh" table1 "$@"
