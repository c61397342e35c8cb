"""All long proofs: runs them one after the other, through their own scripts, and says what their ledgers hold.

    python tests/proofs/all.py --quick          # each for a moment, with ledgers of their own that are thrown away
    python tests/proofs/all.py --resume         # each up to its aim, from where it stopped: days
    python tests/proofs/all.py --only model.py --only damage.py --resume
    python tests/proofs/all.py --table          # writes what the ledgers say into docs/reliability.md

Without ``--resume`` only those are run that have not come to anything yet. What is printed at the end names the proofs
that failed, that were not run, and those for which there is no script yet. Leaves with 1 if one failed.
"""

from __future__ import annotations

import argparse
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "collector"), str(ROOT / "tests")]

from support.campaigns import CAMPAIGNS, PROOFS, Campaign, table, with_table  # noqa: E402

_PAGE = ROOT / "docs/reliability.md"


def main() -> int:
    options = _options()
    if options.table:
        _PAGE.write_text(with_table(_PAGE.read_text()))
        return 0
    failed = []
    for campaign in CAMPAIGNS:
        if not campaign.script or (options.only and campaign.script not in options.only):
            continue
        if not (options.quick or options.resume) and campaign.lines():
            print(f"has lines, left as it is (--resume goes on): {campaign.name}", flush=True)
        elif options.quick and not campaign.quick:
            print(f"left out of --quick: {campaign.name}", flush=True)
        elif _run(campaign, options.quick):
            failed.append(campaign.name)
    if not options.quick:
        _PAGE.write_text(with_table(_PAGE.read_text()))
    print(table())
    for name in failed:
        print(f"FAILED: {name}", file=sys.stderr)
    return 1 if failed else 0


def _run(campaign: Campaign, quick: bool) -> int:
    """How its script ended."""
    script = [sys.executable, str(PROOFS / campaign.script)]
    print(f"{campaign.name}: {campaign.script} {campaign.quick if quick else campaign.whole}", flush=True)
    if not quick:
        return subprocess.run([*script, *shlex.split(campaign.whole)], cwd=ROOT, check=False).returncode
    with tempfile.TemporaryDirectory() as folder:
        ledger = ["--ledger", str(Path(folder) / "ledger.jsonl")]
        return subprocess.run([*script, *shlex.split(campaign.quick), *ledger], cwd=ROOT, check=False).returncode


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a moment of each; their ledgers stay as they are")
    parser.add_argument("--resume", action="store_true", help="also those that have lines, from where they stopped")
    scripts = [each.script for each in CAMPAIGNS if each.script]
    parser.add_argument("--only", action="append", choices=scripts, metavar="SCRIPT", help=", ".join(scripts))
    parser.add_argument("--table", action="store_true", help="write the table into docs/reliability.md, and leave")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
