"""Inserts stamped figures into docs/internals/performance.md."""

from __future__ import annotations

import platform
import sqlite3
import subprocess
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "internals" / "performance.md"


def replaced(page: str, mark: str, text: str) -> str:
    """Return the page with ``text`` between its marks."""
    before, begins, rest = page.partition(f"<!-- {mark} -->\n")
    _, ends, after = rest.partition(f"<!-- end of {mark} -->")
    assert begins, f"the page has no place for {mark}"
    assert ends, f"the place for {mark} has no end"
    return before + begins + text.strip() + "\n" + ends + after


def write(mark: str, text: str) -> None:
    PAGE.write_text(replaced(PAGE.read_text(encoding="utf-8"), mark, text), encoding="utf-8")


def commit() -> str:
    """Return the checkout's commit, with ``+`` if changed."""
    found = subprocess.check_output(["git", "describe", "--always", "--dirty=+", "--exclude=*"], cwd=ROOT, text=True)
    return found.strip()


def machine() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    processor = next(text.split(":", 1)[1].strip() for text in lines if "model name" in text)
    cores = sum(text.startswith("processor") for text in lines)
    system = platform.freedesktop_os_release().get("PRETTY_NAME", platform.system())
    libraries = ", ".join(f"{name} {version(name)}" for name in ("grpcio", "protobuf", "numpy", "zstandard", "uvloop"))
    return (
        f"{cores} x {processor}, Linux {platform.release()}, {system}, Python {platform.python_version()} "
        f"({platform.python_compiler()}), SQLite {sqlite3.sqlite_version}, {libraries}"
    )


def stamp() -> dict[str, str]:
    """Return date, commit and machine."""
    load = Path("/proc/loadavg").read_text().split()[0]
    return {
        "time": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        "commit": commit(),
        "machine": machine(),
        "load": load,
    }


def measured(stamped: dict[str, str], command: str) -> str:
    when = f"{stamped['time']} at {stamped['commit']}"
    system = stamped["machine"].partition(", grpcio")[0]
    return f"Measured {when} by `{command}`, on {system}; load average {stamped['load']} before."
