"""The three-layer report as JSON, case after case: what is written is not in memory as a whole."""

from __future__ import annotations

import json
from collections.abc import Iterator
from textwrap import indent
from typing import Any

from pandaeval_collector.show.report.layer_counts import TrialCount
from pandaeval_collector.show.report.layers import LayerReport


def json_lines(report: LayerReport) -> Iterator[str]:
    """Pieces of the document."""
    head = _text(report.to_dict())
    yield head.removesuffix("\n}") + ',\n "by_case": ['
    cases = report.cases()
    for at, (case, count) in enumerate(cases.items()):
        yield (",\n" if at else "\n") + indent(_text(_case(report, case, count)), "  ")
    yield "\n ]\n}\n" if cases else "]\n}\n"


def _case(report: LayerReport, case: str, count: TrialCount) -> dict[str, Any]:
    about = {"case": case, "kind": count.kind, "description": report.description(case)}
    return {**about, **count.counted(), "trials": [*report.trials(case)]}


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=1)
