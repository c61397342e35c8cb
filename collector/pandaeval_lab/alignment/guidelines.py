"""Writes the file of guidelines that judges go by (:mod:`pandaeval_collector.runs.judging_files` reads it)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from pandaeval_collector.runs.judging_files import WrittenGuideline


def write_guidelines(entries: Sequence[WrittenGuideline], path: Path) -> None:
    """Writes the guidelines file atomically, in place of an older one."""
    held: list[dict[str, Any]] = [each.model_dump(mode="json", exclude_defaults=True) for each in entries]
    beside = path.with_name(f".{path.name}.new")
    beside.write_text(yaml.safe_dump(held, sort_keys=False, allow_unicode=True, width=120), encoding="utf-8")
    os.replace(beside, path)


def withdraw_last(entries: Sequence[WrittenGuideline]) -> tuple[list[WrittenGuideline], WrittenGuideline | None]:
    """Returns the entries with the last adopted one marked ``withdrawn``, and that entry, if any."""
    found = list(entries)
    for at in range(len(found) - 1, -1, -1):
        if found[at].state == "adopted":
            found[at] = found[at].model_copy(update={"state": "withdrawn"})
            return found, found[at]
    return found, None
