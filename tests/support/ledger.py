"""Ledgers of the long proofs: JSON lines with the commit."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
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
