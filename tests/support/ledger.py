"""Ledgers of the long proofs: JSON lines with the commit."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any


def lines(ledger: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in ledger.read_text().splitlines()] if ledger.exists() else []


def note(ledger: Path, proof: str, found: Mapping[str, Any]) -> dict[str, Any]:
    """Add and return a line."""
    line = {"proof": proof, "commit": commit(), "time": datetime.now(UTC).isoformat(timespec="seconds"), **found}
    with ledger.open("a") as file:
        file.write(json.dumps(line) + "\n")
    return line


def commit() -> str:
    return subprocess.check_output(
        ["git", "rev-parse", "--short", "HEAD"], cwd=Path(__file__).parent, text=True
    ).strip()


def concluded(folder: Path, problems: Sequence[str]) -> int:
    """Return the exit code of a proof. The folder is deleted, or named if there are problems."""
    if problems:
        print(f"WRONG, see {folder}", file=sys.stderr)
        return 1
    shutil.rmtree(folder)
    return 0
