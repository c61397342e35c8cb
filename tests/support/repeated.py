"""Results of repeated trials, as ``pandaeval evaluate --cases`` writes them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any


def trial(case: str, name: str, passed: bool | None, kind: str = "", **more: Any) -> dict[str, Any]:
    """Return a ``trial_correct`` result; ``passed``: ``None`` is undetermined."""
    about = {"case": case, "trial": name, **({"case_kind": kind} if kind else {})}
    return {
        "metric": "trial_correct",
        "level": "trial",
        "outcome": "unscored" if passed is None else "scored",
        "score": None if passed is None else float(passed),
        "success": passed,
        "trace_id": f"trace of {case} {name}",
        "session_id": None,
        "agent": "clerk",
        "metadata": about,
        **more,
    }


def trials_of(made: Mapping[str, Iterable[bool | None]], kind: str = "") -> list[dict[str, Any]]:
    return [trial(case, str(at), passed, kind) for case, several in made.items() for at, passed in enumerate(several)]


def written(path: Path, results: Iterable[Mapping[str, Any]]) -> Path:
    path.write_text("".join(f"{json.dumps(each)}\n" for each in results))
    return path
