"""The file of the last drill, beside the store's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson

FILE_NAME = "drill.json"


def last_drill(folder: Path) -> dict[str, Any] | None:
    """The last drill of a data directory: what :meth:`pandaeval_collector.drill.tally.Tally.to_dict` tells, and ``at``,
    the Unix time of its end; ``None`` where there is none."""
    try:
        found = orjson.loads((folder / FILE_NAME).read_bytes())
        return {**found, "at": float(found["at"]), "faults": {**found["faults"]}, "untouched": {**found["untouched"]}}
    except (OSError, ValueError, KeyError, TypeError):
        return None
