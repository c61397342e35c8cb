"""API, runs, commands and MCP share the filters."""

from __future__ import annotations

import inspect
from dataclasses import fields
from typing import Any

import pytest
from pydantic import ValidationError

from pandaeval_collector.base.filters import FILTERS, but_times, meaning
from pandaeval_collector.cli import schedule
from pandaeval_collector.runs.spec import RunSpec
from pandaeval_collector.show.api.filters import RunFilters, to_wanted
from pandaeval_collector.show.mcp.tools import Tools
from pandaeval_collector.store.listed import Wanted
from pandaeval_lab.cli import runs

NAMES = {each.name for each in FILTERS}
GIVEN: dict[str, Any] = {
    "since": "2026-01-01T00:00:00Z",
    "failed": True,
    "outcome": "scored",
    "attribute": ["service.version=1.2=b", "gen_ai.request.model=x"],
}


def test_store_queries_and_run_filters_have_exactly_the_filters() -> None:
    assert {name.removesuffix("_ms") for name in (each.name for each in fields(Wanted))} == NAMES
    assert set(RunFilters.model_fields) == NAMES


def test_commands_have_an_option_for_each_filter() -> None:
    assert inspect.signature(runs.start).parameters.keys() > NAMES
    of_schedule = inspect.signature(schedule.add).parameters.keys()
    assert {each.name for each in but_times()} == NAMES & of_schedule == NAMES - {"since", "until"}


def test_mcp_tools_describe_filters_in_the_same_words() -> None:
    parameters = inspect.signature(Tools.find_traces, eval_str=True).parameters
    shared = NAMES & parameters.keys() - {"failed"}
    assert shared == {
        "text",
        "status",
        "metric",
        "session",
        "agent",
        "service",
        "environment",
        "user",
        "attribute",
        "label",
    }
    for name in shared:
        assert parameters[name].annotation.__metadata__[-1].description == meaning(name)


def test_filters_of_a_run_are_stored_and_read_back() -> None:
    wanted = RunFilters(**GIVEN).wanted()
    assert wanted == Wanted(
        since_ms=1_767_225_600_000,
        failed=True,
        outcome="scored",
        attribute=("service.version=1.2=b", "gen_ai.request.model=x"),
    )
    spec = RunSpec(("trace.tool_loop",), wanted)
    assert RunSpec.from_json(spec.to_json()) == spec
    older = spec.to_json().replace(b'"attribute":["service.version=1.2=b","gen_ai.request.model=x"],', b"")
    assert RunSpec.from_json(older).wanted.attribute == ()
    assert to_wanted() == Wanted()


@pytest.mark.parametrize(
    "wrong",
    [{"attribute": ["x"]}, {"attribute": ["=x"]}, {"attribute": ["a=b"] * 11}, {"outcome": "good"}, {"who": "x"}],
)
def test_invalid_filters_are_rejected(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        RunFilters(**wrong)
