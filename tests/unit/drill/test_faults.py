"""Every fault can be planted and reads correctly."""

from __future__ import annotations

from random import Random

import pytest

from pandaeval_collector.base.score import Score
from pandaeval_collector.pipeline.line.stored_traces import rebuilt
from pandaeval_collector.scoring.metrics.trace.response import response
from pandaeval_lab.drill.fault import NotApplicableError, Planted, Subject, faults, plant
from pandaeval_otel.model import Trace
from support import telemetry_faults
from support.drilled import FIRST, LAST, subject

SEEDS = range(4)
ENDINGS = {"raw_error_answer": "error", "false_success": "false_success", "empty_answer": "empty_answer"}


def planted(name: str, seed: int) -> tuple[Planted, Trace]:
    made = plant({**faults(), **telemetry_faults.FAULTS}[name], subject(), Random(seed))
    trace = rebuilt(made.parts).trace
    assert trace is not None
    return made, trace


@pytest.mark.parametrize("name", faults())
def test_every_fault_can_be_planted_and_names_the_changed_spans(name: str) -> None:
    before = subject().trace
    for seed in SEEDS:
        made, after = planted(name, seed)
        assert made.what
        assert made.span_ids & {span.span_id for span in (*before.spans, *after.spans)}
        assert (after.trace_id, after.session_id) == (before.trace_id, before.session_id)


@pytest.mark.parametrize("name", faults())
def test_the_same_seed_plants_the_same_fault(name: str) -> None:
    assert planted(name, 3)[0] == planted(name, 3)[0]


INVENTED = [name for name in faults() if name.startswith("invented_")]


@pytest.mark.parametrize("name", INVENTED)
def test_an_invented_value_is_in_the_answer_and_nowhere_else_in_the_run(name: str) -> None:
    for seed in SEEDS:
        made, after = planted(name, seed)
        old, new = made.what.rpartition(" → ")[::2]
        assert new in (after.output or "")
        assert new not in LAST
        assert not subject().knows(new)
        assert old.split()[-1] in LAST


def test_half_answer_keeps_only_the_beginning_of_the_answer() -> None:
    for seed in SEEDS:
        output = planted("half_answer", seed)[1].output
        assert output
        assert LAST.startswith(output)
        assert output != LAST


def test_false_success_makes_the_last_tool_call_fail_and_keeps_the_answer() -> None:
    _, after = planted("false_success", 0)
    assert after.tool_calls[-1].name == "cancel_booking"
    assert "Error" in after.tool_calls[-1].result
    assert after.tool_calls[-1].error
    assert after.output == LAST


def test_changed_answers_are_labelled_by_the_response_metric() -> None:
    for seed in SEEDS:
        found = {name: response(planted(name, seed)[1]) for name in ENDINGS}
        assert {name: isinstance(each, Score) and each.label for name, each in found.items()} == ENDINGS


def test_exact_loop_repeats_one_tool_call() -> None:
    for seed in SEEDS:
        made, after = planted("exact_loop", seed)
        tool = made.what.partition(" ")[0]
        calls = [call for call in after.tool_calls if call.name == tool]
        assert 3 <= len(calls) <= 8
        assert len({call.span_id for call in calls}) == len(calls)
        assert len({repr(call.arguments) for call in calls}) == 1
        assert after.output == LAST


def test_the_answer_is_replaced_by_another_answer_or_by_an_empty_one() -> None:
    assert planted("other_answer", 0)[1].output == "The weather in Oslo is fine today."
    assert planted("empty_answer", 0)[1].output == ""


def test_a_crash_ends_in_an_error_without_an_answer() -> None:
    _, after = planted("crash", 0)
    assert after.error
    assert not after.output


def test_telemetry_faults_remove_content_history_results_or_spans() -> None:
    before = subject().trace
    off = planted("content_off", 0)[1]
    assert (off.input, off.output) == (None, None)
    assert [call.name for call in off.tool_calls] == [call.name for call in before.tool_calls]
    assert all(FIRST.encode() not in data for _, data in planted("history_off", 0)[0].parts)
    assert all(len(str(call.result)) < 80 for call in planted("results_truncated", 0)[1].tool_calls)
    assert len(planted("spans_lost", 0)[1].spans) < len(before.spans)


def test_an_answer_fault_does_not_apply_to_a_run_without_an_answer() -> None:
    without = planted("content_off", 0)[0].parts
    trace = rebuilt(without).trace
    assert trace is not None
    with pytest.raises(NotApplicableError, match="no captured answer"):
        plant(faults()["empty_answer"], Subject(trace, without), Random(0))


def test_faults_cover_each_family_and_have_a_description() -> None:
    assert {fault.family for fault in faults().values()} == {"value", "claim", "course"}
    assert len(faults()) >= 10
    assert all(fault.text.endswith(".") for fault in faults().values())
