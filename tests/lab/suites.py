"""Runs the marked test suites and records each run in a ledger.

    python tests/support/programs.py        # once: builds Jaeger, Prometheus and an OpenTelemetry Collector
    python tests/lab/suites.py e2e          # or: slow, packages
    python tests/lab/suites.py e2e --only tests/e2e/test_quick_start.py

A whole suite appends commit, counts and failures to ``tests/lab/suites-ledger.jsonl``.
``tests/contract/test_suites_ran.py`` requires a recent line. Exit code: pytest's.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).parents[2]
LEDGER = ROOT / "tests" / "lab" / "suites-ledger.jsonl"
_PACKAGES = "tests/integration/test_packages.py"
_PARALLEL = ("-n", "2", "--dist", "loadfile")
SUITES = {
    "e2e": ("e2e", ["tests/e2e"]),
    "slow": ("slow", ["tests/integration", "tests/unit", "tests/property", f"--ignore={_PACKAGES}", *_PARALLEL]),
    "packages": ("slow", [_PACKAGES]),
}
"""The marker and the arguments of each suite. ``packages`` builds and installs each package, for half an hour."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suite", choices=SUITES)
    parser.add_argument("--only", nargs="+", help="Run these files, and write no line to the ledger.")
    options = parser.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job ignores SIGINT, and so would the tests
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        began = time.monotonic()
        marker, arguments = SUITES[options.suite]
        command = [sys.executable, "-m", "pytest", "-q", "-m", marker, f"--junitxml={report}"]
        code = subprocess.run([*command, *(options.only or arguments)], cwd=ROOT, check=False).returncode
        if options.only is None and report.exists():
            line = _line(options.suite, report) | {"seconds": round(time.monotonic() - began)}
            with LEDGER.open("a") as ledger:
                ledger.write(json.dumps(line) + "\n")
    return code


def _line(suite: str, report: Path) -> dict[str, object]:
    tests = [*ElementTree.parse(report).iter("testcase")]
    failed = [test for test in tests if test.find("failure") is not None or test.find("error") is not None]
    skipped = [test for test in tests if test.find("skipped") is not None]
    commit = subprocess.run(["git", "rev-parse", "--short=8", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    return {
        "suite": suite,
        "commit": commit.stdout.strip(),
        "time": time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime()),
        "passed": len(tests) - len(failed) - len(skipped),
        "skipped": len(skipped),
        "failed": sorted(f"{test.get('classname')}::{test.get('name')}" for test in failed),
    }


if __name__ == "__main__":
    sys.exit(main())
