"""Third-party packages that fail on import, and metrics that fail on every trace."""

from __future__ import annotations

import json
import os
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path

from support.hostile import doors
from support.hostile.attack import TAKEN, Ground, Target, attack

_AT_IMPORT = {
    "raises": "raise RuntimeError('x' * 10_000_000)",
    "leaves": "import sys; sys.exit(3)",
    "recurses": "def again(): again()\nagain()",
    "misses": "import a_module_that_nobody_has",
    "is_none": "METRIC = 7",
    "prints": "print('\\x1b]0;owned\\x07' * 10_000)\nMETRIC = None",
    "is_no_python": "def",
}
_METRIC = """
from pandaeval_collector import Metric, Score, Unscored, Why


def _again(trace):
    return _again(trace)


def _evaluate(trace, context):
    {body}


METRIC = Metric(level="trace", name="{name}", kind="code", version="1", threshold=0.5, question="What goes wrong?",
                needs="nothing", evaluate=_evaluate)
"""
_AT_EACH_TRACE = {
    "leaving": "raise SystemExit(3)",
    "recursing": "return _again(trace)",
    "raising": "raise ValueError('y' * 5_000_000)",
    "out_of_memory": "raise MemoryError",
    "not_a_number": "return Score(float('nan'), 'n')",
    "out_of_range": "return Score(7.0, 'n')",
    "no_finding": "return 'fine'",
    "wordy": "return Score(1.0, 'z' * 5_000_000)",
    "with_odd_details": "return Score(1.0, 'n', {'it': object(), 'more': list(range(200_000))})",
}


def _installed(folder: Path, scale: int) -> Mapping[str, str]:
    place = folder / "packages"
    for number in range(scale):
        for name, body in _AT_IMPORT.items():
            _package(place, f"{name}_{number}", body)
        for name, body in _AT_EACH_TRACE.items():
            _package(place, f"{name}_{number}", _METRIC.format(name=f"{name}_{number}", body=body))
    return {"PYTHONPATH": os.pathsep.join([str(place), *filter(None, sys.path)])}


def _package(place: Path, name: str, body: str) -> None:
    about = place / f"hostile_{name}-1.0.dist-info"
    about.mkdir(parents=True)
    (place / f"hostile_{name}.py").write_text(body)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: hostile_{name}\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(f"[pandaeval.metrics]\nhostile_{name} = hostile_{name}\n")


PLUGGED = Ground("packages that misbehave", prepare=_installed)


@attack(PLUGGED)
def packages_that_misbehave(target: Target, scale: int) -> Iterator[str]:
    """Check that failing packages and metrics do not affect our scores."""
    time.sleep(10.0)
    address = f"http://{target.http}/api/v1/results?limit=200"
    with urllib.request.urlopen(address, timeout=doors.PATIENCE_S) as response:
        results = json.loads(response.read())["items"]
    for each in results:
        is_theirs = any(each["metric"].rpartition("_")[0] == name for name in _AT_EACH_TRACE)
        if is_theirs and each["score"] is not None and not 0.0 <= each["score"] <= 1.0:
            yield TAKEN
        yield f"{each['outcome']}, {'theirs' if is_theirs else 'ours'}"
    if not any(each["outcome"] == "scored" for each in results):
        yield TAKEN
