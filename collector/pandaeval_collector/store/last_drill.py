"""The file of the last drill, beside the store's own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson

FILE_NAME = "drill.json"


def last_drill(folder: Path) -> dict[str, Any] | None:
    """Reads the last drill of a data directory: what :meth:`pandaeval_collector.drill.tally.Tally.to_dict` tells, and
    ``at``, the Unix time of its end; ``None`` where there is none."""
    try:
        found = orjson.loads((folder / FILE_NAME).read_bytes())
        faults = {name: _fault(told) for name, told in found["faults"].items()}
        return {**found, "at": float(found["at"]), "faults": faults, "untouched": _shares(found["untouched"])}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _fault(told: Mapping[str, Any]) -> dict[str, Any]:
    """Reads what is told of a fault; raises where a key is missing that scrapes and pages read."""
    read = {"n": int(told["n"]), "family": told["family"], "by_metric": _shares(told["by_metric"])}
    return {**told, **read, "noticed": {**told["noticed"], "share": told["noticed"]["share"]}}


def _shares(told: Mapping[str, Any]) -> dict[str, Any]:
    return {name: {**each, "share": each["share"]} for name, each in told.items()}
