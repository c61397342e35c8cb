"""Runs all long proofs and prints their ledgers.

    python tests/lab/proofs/all.py --quick          # briefly, with temporary ledgers
    python tests/lab/proofs/all.py --resume         # continue each to its aim: days
    python tests/lab/proofs/all.py --resume --share 15  # a quarter of an hour each
    python tests/lab/proofs/all.py --only model.py --only damage.py --resume
    python tests/lab/proofs/all.py --table    # writes the ledgers into docs/internals/ledgers.md

Without ``--resume`` only proofs without a result run. Prints failed, skipped and missing proofs. Exit code 1 on
failure.
"""

from __future__ import annotations

import argparse
import shlex
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[3]
sys.path[:0] = [str(ROOT), str(ROOT / "collector"), str(ROOT / "tests")]

from support.campaigns import CAMPAIGNS, PROOFS, Campaign, table, with_table  # noqa: E402

_PAGE = ROOT / "docs/internals/ledgers.md"


def main() -> int:
    options = _options()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job and its children ignore SIGINT
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
        elif _run(campaign, options.quick, options.share):
            failed.append(campaign.name)
    if not options.quick:
        _PAGE.write_text(with_table(_PAGE.read_text()))
    print(table())
    for name in failed:
        print(f"FAILED: {name}", file=sys.stderr)
    return 1 if failed else 0


def _run(campaign: Campaign, quick: bool, minutes: float | None) -> int:
    """Return a script's exit code; 0 if its share ended."""
    arguments = campaign.quick if quick else campaign.whole
    print(f"{campaign.name}: {campaign.script} {arguments}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        ledger = ["--ledger", str(Path(folder) / "ledger.jsonl")] if quick else []
        script = [sys.executable, str(PROOFS / campaign.script), *shlex.split(arguments), *ledger]
        with subprocess.Popen(script, cwd=ROOT) as process:
            try:
                return process.wait(None if minutes is None else minutes * 60)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGINT)  # the proof stops its processes; work without a ledger line is lost
                return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a moment of each; their ledgers stay as they are")
    parser.add_argument("--resume", action="store_true", help="also those that have lines, from where they stopped")
    parser.add_argument("--share", type=float, metavar="MINUTES", help="each is broken off after so long")
    scripts = [each.script for each in CAMPAIGNS if each.script]
    parser.add_argument("--only", action="append", choices=scripts, metavar="SCRIPT", help=", ".join(scripts))
    parser.add_argument("--table", action="store_true", help="write docs/internals/ledgers.md, and leave")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
