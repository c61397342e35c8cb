"""Help is not cut at 80 columns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from pandaeval_collector.cli import _app
from support.commands import whole_app


def _paths(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    yield path
    for name, below in getattr(command, "commands", {}).items():
        yield from _paths(below, (*path, name))


def test_no_help_page_is_cut_at_80_columns() -> None:
    built = _app._build()
    built.rich_markup_mode = "rich"
    found = list(_paths(get_command(whole_app())))
    assert ("config", "check") in found
    assert ("report",) in found
    for path in found:
        page = CliRunner().invoke(built, [*path, "--help"], env={"COLUMNS": "80", "NO_COLOR": "1"}).output
        assert "╭" in page, path
        assert max(map(len, page.splitlines())) <= 80, path
        assert "…" not in page, (path, [line for line in page.splitlines() if "…" in line])


@pytest.mark.parametrize("mode", ["rich", None])
def test_help_lists_the_most_used_commands_first(mode: Any) -> None:
    built = _app._build()
    built.rich_markup_mode = mode
    page = CliRunner().invoke(built, ["--help"], env={"COLUMNS": "80", "NO_COLOR": "1"}).output
    sections = ["Start", "Find failures", "Measure and test", "Operate", "Further commands"]
    places = [page.index(section) for section in sections]
    assert places == sorted(places)
    names = [line.strip("│ ").split(" ")[0] for line in page.splitlines()]
    start, further = names.index("demo"), names.index("passk")
    assert start < names.index("failures") < names.index("cases") < names.index("delete") < further
    assert set(_app._overview()) <= set(names)
