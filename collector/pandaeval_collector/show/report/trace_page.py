"""A trace's detail together with what its results say of it: what the page of one trace is drawn from."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pandaeval_collector.show.report.loops import groups
from pandaeval_collector.show.report.results import ShownResult


def told(detail: dict[str, Any], results: Iterable[ShownResult]) -> dict[str, Any]:
    """``detail``, as :func:`pandaeval_collector.show.report.detail.detail` makes it, with ``results`` in full and the
    ``loops`` that they found."""
    held = list(results)
    loop = next((each for each in held if each.key == "trace.tool_loop"), None)
    cycles = loop.full.get("metadata", {}).get("cycles", []) if loop is not None else []
    found = groups(detail["spans"], [cycle for cycle in cycles if isinstance(cycle, dict)])
    return {**detail, "results": [{**each.full, "older": each.older} for each in held], "loops": found}
