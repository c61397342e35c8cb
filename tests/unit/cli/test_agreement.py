"""Agreement with other evaluators."""

from __future__ import annotations

import io
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest
from rich.console import Console

from pandaeval_collector.base.result import Result
from pandaeval_collector.pipeline.line.understanding import ScoredTrace
from pandaeval_lab.cli._agreement import Agreement, passes
from pandaeval_otel.model import OtherResult, Trace

FAITHFUL = OtherResult("Faithfulness", "deepeval", 0.1, "fail")


def shown(*runs: tuple[OtherResult, list[bool | None]]) -> str:
    """Return the agreement table."""
    stage = Agreement()
    for at, (other, verdicts) in enumerate(runs):
        trace = Trace(f"{at:032x}", (), "", evaluations=(other,))
        assert stage.keep(cast(ScoredTrace, SimpleNamespace(trace=trace)))
        for success in verdicts:
            document: dict[str, Any] = {"level": "trace", "success": success, "trace_id": trace.trace_id}
            stage.take(cast(Result, None), document)
    out = Console(file=io.StringIO(), width=200)
    stage.show(out)
    return cast(io.StringIO, out.file).getvalue()


def test_each_pair_of_verdicts_has_a_column() -> None:
    good = replace(FAITHFUL, label="pass")
    text = shown((good, [True]), (good, [True, False]), (FAITHFUL, [True]), (FAITHFUL, [False]), (FAITHFUL, [False]))
    assert text.splitlines()[-1].split() == ["deepeval", "Faithfulness", "5", "1", "2", "1", "1"]


def test_without_other_evaluators_or_verdicts_there_is_no_table() -> None:
    assert shown() == ""
    assert shown((FAITHFUL, [None])) == ""
    assert shown((replace(FAITHFUL, label="", score=None), [True])) == ""


@pytest.mark.parametrize(
    ("label", "score", "verdict"),
    [
        ("Pass", 0.1, True),
        ("FAILED", 0.9, False),
        ("true", None, True),
        ("", 0.5, True),
        ("", 0.4, False),
        ("helpful", 0.9, True),
        ("", 4.0, None),
        ("helpful", None, None),
    ],
)
def test_what_is_a_pass(label: str, score: float | None, verdict: bool | None) -> None:
    assert passes(replace(FAITHFUL, label=label, score=score)) is verdict
