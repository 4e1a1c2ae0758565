#!/usr/bin/env bash
# Figure 1, heatmaps like Figures 2, 4 and 5 with an HTML report, and curves of the trainings.
#   PRESET=small bash experiments/figures.sh [--dry_run] [analysis.limit=20 …]
exec bash "$(dirname "${BASH_SOURCE[0]}")/run.sh" figures "$@"
