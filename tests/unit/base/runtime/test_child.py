"""Processes of ours: they run the program that their parent runs, whatever else is installed."""

from __future__ import annotations

import os
from pathlib import Path

import pandaeval_collector
from pandaeval_collector.base.runtime.child import start_child


async def test_a_child_imports_the_package_of_its_parent(tmp_path: Path) -> None:
    """A checkout beside an installed version: the child must not answer for the other one."""
    (tmp_path / "where_from.py").write_text("import pandaeval_collector as c; print(c.__file__, end='')")
    child = await start_child("where_from", {**os.environ, "PYTHONPATH": str(tmp_path)})
    assert Path((await child.out.read()).decode()) == Path(pandaeval_collector.__file__)
    assert await child.wait() == 0
