"""python -m tests.hardening [N] [--seed S] [--targets A,B] [--only TARGET:NUMBER]"""
import argparse
import contextlib
import json
import sys
import warnings

from tests.hardening import campaign


def main():
    parser = argparse.ArgumentParser(prog='python -m tests.hardening')
    parser.add_argument('count', nargs='?', type=int, default=10_000, help='cases')
    parser.add_argument('--seed', default='1', help='other seeds are other cases')
    parser.add_argument('--targets', help='only these, e.g. Snapshot,Kernels')
    parser.add_argument('--only', metavar='TARGET:NUMBER', help='one case')
    parser.add_argument('--batch', type=int, default=1, help='cases per child')
    parser.add_argument('--sanitized', action='store_true', help='without a limit of memory')
    parser.add_argument('--json', action='store_true', help='end in JSON instead of a table')
    flags = parser.parse_args()
    warnings.simplefilter('ignore')
    count = campaign.Count(lambda text: print(text, file=sys.stderr, flush=True))
    cases = ([tuple(flags.only.split(':'))] if flags.only else
             campaign.choose(flags.count, flags.seed, flags.targets and flags.targets.split(',')))
    with contextlib.suppress(KeyboardInterrupt):  # which ends in a table of what was done
        campaign.run(cases, count, flags.batch, not flags.sanitized)
    print(json.dumps(count.total) if flags.json else count.table())
    sys.exit(1 if count.defects else 0)


if __name__ == '__main__':
    main()
