"""Ledgers of the long proofs: one line of JSON for each part, with the state of the code that it ran on."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any


def lines(ledger: Path) -> list[dict[str, Any]]:
    """All of them, oldest first; none where there is no file yet."""
    return [json.loads(line) for line in ledger.read_text().splitlines()] if ledger.exists() else []


def note(ledger: Path, proof: str, found: Mapping[str, Any]) -> dict[str, Any]:
    """Add a line, and return it."""
    line = {"proof": proof, "commit": commit(), "time": datetime.now(UTC).isoformat(timespec="seconds"), **found}
    with ledger.open("a") as file:
        file.write(json.dumps(line) + "\n")
    return line


def commit() -> str:
    """The state of the code."""
    return subprocess.check_output(
        ["git", "rev-parse", "--short", "HEAD"], cwd=Path(__file__).parent, text=True
    ).strip()
