"""Outcomes of findings and fields of results."""

from __future__ import annotations

import hashlib
import math
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import orjson
import pytest

from pandaeval_collector.base.result import MAX_REASON_CHARS, MAX_TEXT_CHARS, Identity, Result, Unit, cut, now
from pandaeval_collector.base.score import Assumed, Finding, Score, Unscored, Why
from support.results import CODE, END_NS, JUDGE, SPAN_ID, TIME, TRACE_ID, UNIT, result

BELOW, ABOVE = 0.5 - 1e-9, 0.5 + 1e-9


def concluded(finding: Finding, threshold: float | None) -> Result:
    return replace(result(finding=finding), threshold=threshold)


# -- pass or fail --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "threshold", "passes"),
    [
        (0.75, 0.5, True),
        (0.25, 0.5, False),
        (0.5, 0.5, True),
        (1.0, 1.0, True),
        (0.0, 0.0, True),
        (math.nextafter(1.0, 0.0), 1.0, True),
        (0.25, None, None),
    ],
)
def test_a_score_passes_at_or_above_its_threshold(value: float, threshold: float | None, passes: bool | None) -> None:
    assert concluded(Score(value), threshold).success is passes


@pytest.mark.parametrize(
    ("value", "passes"),
    [
        (BELOW, True),
        (math.nextafter(BELOW, 1.0), True),
        (math.nextafter(BELOW, 0.0), False),
        (0.5 - 2e-9, False),
        (0.5 - 1e-6, False),
        (0.5 - 1e-3, False),
        (ABOVE, True),
    ],
)
def test_the_threshold_has_a_tolerance_of_1e_9(value: float, passes: bool) -> None:
    assert concluded(Score(value), 0.5).success is passes


@pytest.mark.parametrize(
    ("raw", "value", "passes"),
    [
        (4.0, 0.0, True),
        (4.0 - 1e-12, 0.0, True),
        (3.0, 1.0, False),
        (4.0 - 1e-3, 1.0, False),
        (5.0, 1.0, True),
        (0.0, 1.0, False),
    ],
)
def test_a_raw_value_is_compared_with_the_threshold_on_its_scale(raw: float, value: float, passes: bool) -> None:
    assert concluded(Score(value, raw=raw, scale="1-5"), 4.0).success is passes


@pytest.mark.parametrize("threshold", [0.0, 0.5, None])
@pytest.mark.parametrize("raw", [None, 5.0])
def test_a_score_marked_as_failed_fails_at_any_threshold(raw: float | None, threshold: float | None) -> None:
    assert concluded(Score(1.0, raw=raw, failed=True), threshold).success is False


@pytest.mark.parametrize(
    ("finding", "threshold", "expected"),
    [
        (Score(0.75), 0.5, ("scored", 0.75, None, True, "pass")),
        (Score(0.25), 0.5, ("scored", 0.25, None, False, "fail")),
        (Score(0.25), None, ("scored", 0.25, None, None, None)),
        (Score(0.75, label="fine"), 0.5, ("scored", 0.75, None, True, "fine")),
        (Score(0.75, label=""), 0.5, ("scored", 0.75, None, True, "")),
        (Score(1.0, label="error", failed=True), 0.5, ("scored", 1.0, None, False, "error")),
        (Score(1.0, failed=True), None, ("scored", 1.0, None, False, "fail")),
        (Assumed("nothing to do"), 0.5, ("assumed", 1.0, None, True, "assumed")),
        (Assumed("nothing to do"), None, ("assumed", 1.0, None, True, "assumed")),
        (Unscored(Why.TIMEOUT), 0.5, ("unscored", None, "timeout", None, None)),
        (Unscored(Why.NO_CONTENT), 0.0, ("unscored", None, "no_content", None, None)),
    ],
)
def test_a_finding_determines_outcome_score_why_success_and_label(
    finding: Finding, threshold: float | None, expected: tuple[Any, ...]
) -> None:
    made = concluded(finding, threshold)
    assert (made.outcome, made.score, made.why, made.success, made.label) == expected


# -- its content ---------------------------------------------------------------------------------------------------

COMMON = {
    "id": "coherence-1",
    "metric": "coherence",
    "level": "trace",
    "threshold": 0.5,
    "trace_id": TRACE_ID,
    "span_id": SPAN_ID,
    "session_id": "session-1",
    "agent": "helper",
    "service": "shop",
    "environment": "test",
    "evaluator": {"kind": "embedding", "version": "2", "model": "embedded-1"},
    "revision": 1,
    "final": True,
    "trigger": "root_ended",
    "late_spans": 0,
    "cost_usd": 0.0,
    "tokens": 0,
    "duration_ms": 1.5,
    "time": "2026-03-01T12:00:00.250000+00:00",
}


@pytest.mark.parametrize(
    ("finding", "fields"),
    [
        (
            Score(0.75, "well said", {"words": 3}, 4.0, "1-5", coverage=0.5, span_ids=("a", "b")),
            {
                "outcome": "scored",
                "score": 0.75,
                "raw": 4.0,
                "scale": "1-5",
                "success": True,
                "label": "pass",
                "why": None,
                "reason": "well said",
                "metadata": {"words": 3, "threshold": 0.5, "success": True},
                "span_ids": ["a", "b"],
                "coverage": 0.5,
            },
        ),
        (
            Assumed("nothing to do", {"words": 3}),
            {
                "outcome": "assumed",
                "score": 1.0,
                "raw": None,
                "scale": None,
                "success": True,
                "label": "assumed",
                "why": None,
                "reason": "nothing to do",
                "metadata": {"words": 3, "threshold": 0.5, "success": True},
                "span_ids": [],
                "coverage": 1.0,
            },
        ),
        (
            Unscored(Why.NO_CONTENT, "no answer", {"words": 0}, coverage=0.25),
            {
                "outcome": "unscored",
                "score": None,
                "raw": None,
                "scale": None,
                "success": None,
                "label": None,
                "why": "no_content",
                "reason": "no answer",
                "metadata": {"words": 0, "threshold": 0.5, "success": None},
                "span_ids": [],
                "coverage": 0.25,
            },
        ),
    ],
)
def test_a_result_contains_all_fields_of_its_finding(finding: Finding, fields: dict[str, Any]) -> None:
    made = result(finding=finding)
    assert made.to_dict() == COMMON | fields
    assert orjson.loads(made.to_json()) == COMMON | fields


@pytest.mark.parametrize(
    ("changes", "fields"),
    [
        ({"run_id": "r1"}, {"run_id": "r1"}),
        (
            {"case": "c1", "trial": "2"},
            {"metadata": {"case": "c1", "trial": "2", "threshold": 0.5, "success": True}},
        ),
        ({"trial": "2"}, {}),
        (
            {"failure_group": "g1", "failure_severity": "high"},
            {"metadata": {"threshold": 0.5, "success": True, "failure_group": {"id": "g1", "severity": "high"}}},
        ),
        ({"failure_group": ""}, {}),
        ({"revision": 3, "final": False, "late_spans": 2}, {"revision": 3, "final": False, "late_spans": 2}),
        ({"cost_usd": 0.25, "tokens": 7}, {"cost_usd": 0.25, "tokens": 7}),
    ],
)
def test_optional_fields_appear_only_if_set(changes: dict[str, Any], fields: dict[str, Any]) -> None:
    bare = result().to_dict()
    assert result(**changes).to_dict() == bare | fields


@pytest.mark.parametrize(
    ("finding", "success"), [(Score(0.25, metadata={"threshold": 9, "success": "mine"}), False), (Score(0.75), True)]
)
def test_threshold_and_success_in_the_metadata_override_those_of_the_metric(finding: Score, success: bool) -> None:
    assert result(finding=finding).to_dict()["metadata"] == {"threshold": 0.5, "success": success}


@pytest.mark.parametrize(("given", "kept"), [(199, 199), (200, 200), (201, 200)])
def test_a_result_lists_at_most_200_spans(given: int, kept: int) -> None:
    spans = tuple(map(str, range(given)))
    assert result(finding=Score(1.0, span_ids=spans)).to_dict()["span_ids"] == [*spans[:kept]]


@pytest.mark.parametrize(
    ("text", "most", "cut_text"),
    [("", 3, ""), ("abc", 3, "abc"), ("abcd", 3, "ab…"), ("abcdef", 3, "ab…"), ("ab", 1, "…")],
)
def test_a_text_is_shortened_to_its_maximum_length(text: str, most: int, cut_text: str) -> None:
    assert cut(text, most) == cut_text


@pytest.mark.parametrize(("length", "kept"), [(MAX_REASON_CHARS, "x"), (MAX_REASON_CHARS + 1, "…")])
def test_a_reason_has_at_most_4000_characters(length: int, kept: str) -> None:
    reason = result(finding=Score(1.0, "x" * length)).to_dict()["reason"]
    assert (len(reason), reason[-1], MAX_REASON_CHARS) == (4000, kept, 4000)


# -- as JSON -------------------------------------------------------------------------------------------------------


def _metadata(value: Any) -> Any:
    return orjson.loads(result(finding=Score(1.0, metadata={"it": value})).to_json())["metadata"]["it"]


def test_texts_are_shortened_only_in_a_body_over_64_kib() -> None:
    bare = len(result(finding=Score(1.0, metadata={"it": ""})).to_json())
    room = (64 << 10) - bare
    assert _metadata("x" * room) == "x" * room
    assert _metadata("x" * (room + 1)) == "x" * (MAX_TEXT_CHARS - 1) + "…"
    assert MAX_TEXT_CHARS == 2000


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (np.float64(0.5), 0.5),
        (np.array([1.0, 2.0]), [1.0, 2.0]),
        ((1 << 63) - 1, (1 << 63) - 1),
        (-(1 << 63), -(1 << 63)),
        (1 << 64, float(1 << 64)),
        (-(1 << 80), -float(1 << 80)),
        ((1 << 1024) - 1, str((1 << 1024) - 1)[:20]),
        ((1 << 1023) - 1, float((1 << 1023) - 1)),
        ({"kept": 1, "big": 1 << 70}, {"kept": 1, "big": float(1 << 70)}),
        ([1 << 70, "x" * 2001], [float(1 << 70), "x" * 1999 + "…"]),
        ((1 << 70, "x" * 2000), [float(1 << 70), "x" * 2000]),
        ({7: 1 << 70}, {"7": float(1 << 70)}),
        ({"k" * 2001: 1 << 70}, {"k" * 1999 + "…": float(1 << 70)}),
        ([1 << 70, True, None, 0.5], [float(1 << 70), True, None, 0.5]),
        ([1 << 70, range(3)], [float(1 << 70), "range(0, 3)"]),
        ([1 << 70, np.array([1.0])], [float(1 << 70), [1.0]]),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_values_that_json_cannot_hold_become_the_nearest_json_value(value: Any, written: Any) -> None:
    assert _metadata(value) == written


@pytest.mark.parametrize(
    ("number", "kind"), [((1 << 63) - 1, int), (1 - (1 << 63), int), (1 << 63, float), ((1 << 64) - 1, float)]
)
def test_64_bit_signed_integers_stay_integers_beside_larger_numbers(number: int, kind: type) -> None:
    found, _ = _metadata([number, 1 << 70])
    assert (type(found), found) == (kind, kind(number))


def test_numpy_values_do_not_cause_texts_to_be_shortened() -> None:
    given = {"vector": np.array([0.5]), "text": "x" * (MAX_TEXT_CHARS + 1)}
    assert _metadata(given) == {"vector": [0.5], "text": given["text"]}


@pytest.mark.parametrize(("deep", "kept"), [(90, True), (98, True), (99, False), (5000, False)])
def test_values_nested_deeper_than_the_limit_are_left_out(deep: int, kept: bool) -> None:
    nested: Any = 1 << 70  # too large for JSON, so that the values are converted
    for _ in range(deep):
        nested = [nested]
    found, depth = _metadata(nested), 0
    while isinstance(found, list):
        [found] = found
        depth += 1
    assert (found, depth) == ((float(1 << 70), deep) if kept else ("…", 98))


def test_an_unknown_object_becomes_a_text_of_at_most_2000_characters() -> None:
    class Long:
        def __repr__(self) -> str:
            return "y" * 2001

    assert _metadata(Long()) == "y" * 1999 + "…"


# -- its parts -------------------------------------------------------------------------------------------------------


def test_time_ns_is_exact_to_the_microsecond() -> None:
    for microsecond in (0, 1, 249_999, 250_000, 999_999):
        time = datetime(2026, 3, 1, 12, 0, 0, microsecond, UTC)
        since = time - datetime(1970, 1, 1, tzinfo=UTC)
        assert result(time=time).time_ns == since // timedelta(microseconds=1) * 1000
    assert result(time=TIME).time_ns == 1_772_366_400_250_000_000
    assert result(time=TIME).to_dict()["time"] == "2026-03-01T12:00:00.250000+00:00"


def test_now_is_in_utc() -> None:
    assert now().utcoffset() == timedelta(0)


@pytest.mark.parametrize(
    ("judge", "known", "cached"),
    [
        ({"pack": "p", "tokens": {"cached": 64}}, True, 64),
        ({"pack": "p", "tokens": {"input": 64}}, True, 0),
        ({"pack": "p", "tokens": None}, True, 0),
        ({"pack": "p"}, True, 0),
        ({"tokens": {"cached": 64}}, False, 0),
        ("a sentence with pack", False, 0),
        (None, False, 0),
    ],
)
def test_judge_metadata_counts_only_with_a_pack(judge: Any, known: bool, cached: int) -> None:
    made = result(finding=Score(1.0, metadata={} if judge is None else {"judge": judge}), evaluator=JUDGE)
    assert made.judge == (judge if known else {})
    assert made.cached_tokens == cached


def test_with_evidence_changes_only_the_evidence() -> None:
    whole = Unit(
        level="session",
        id="s1",
        trace_id=TRACE_ID,
        span_id=SPAN_ID,
        session_id="s1",
        agent="helper",
        service="shop",
        environment="test",
        evidence="e0",
        revision=4,
        trigger="idle",
        late_spans=3,
        response_id="resp-1",
        end_ns=END_NS,
        sampled=False,
        trace_ids=("a", "b"),
        case="c1",
        trial="2",
    )
    plain = Unit("trace", "t", "t", "s")
    assert all(getattr(whole, each.name) != getattr(plain, each.name) for each in fields(Unit)), "all are set"
    assert whole.with_evidence("e1") == replace(whole, evidence="e1")


def test_units_and_results_have_their_defaults() -> None:
    unit = Unit("trace", "t", "t", "s")
    assert (unit.sampled, unit.revision, unit.late_spans, unit.end_ns, unit.trigger) == (True, 1, 0, 0, "file")
    assert (unit.session_id, unit.environment) == (None, None)
    assert {unit.agent, unit.service, unit.evidence, unit.response_id, unit.case, unit.trial} == {""}
    assert CODE.model is None
    made = Result("r", "m", unit, Score(1.0), CODE, 0.5, 1, True, 0.0, TIME)
    assert (made.cost_usd, made.tokens) == (0.0, 0)
    assert (made.run_id, made.failure_group, made.failure_severity) == (None, None, None)


# -- its id ----------------------------------------------------------------------------------------------------------


def _id(unit: Unit = UNIT, **changes: Any) -> str:
    about = {"key": "trace.coherence", "version": "2", "model": "embedded-1", "settings": {"a": 1, "b": 2}}
    return Identity(**{**about, **changes}).of(unit)


def test_the_id_is_a_digest_of_what_the_result_depends_on() -> None:
    depends = ["trace", TRACE_ID, "trace.coherence", "2", "embedded-1", '{"a":1,"b":2}', "e0"]
    assert _id() == hashlib.blake2b(orjson.dumps(depends), digest_size=16).hexdigest()


@pytest.mark.parametrize(
    "changes",
    [
        {"key": "trace.grounding"},
        {"version": "3"},
        {"model": None},
        {"settings": {"a": 1, "b": 3}},
        {"unit": replace(UNIT, level="turn")},
        {"unit": replace(UNIT, id="f" * 32)},
        {"unit": replace(UNIT, evidence="e1")},
    ],
)
def test_the_id_changes_with_each_of_its_inputs(changes: dict[str, Any]) -> None:
    assert _id(**changes) != _id()


@pytest.mark.parametrize(
    "changes",
    [
        {"settings": {"b": 2, "a": 1}},
        {"settings": {"b": np.int64(2), "a": 1}},
        {"unit": replace(UNIT, revision=7, trigger="idle", agent="other", span_id="0" * 16)},
    ],
)
def test_the_id_ignores_key_order_revision_trigger_agent_and_span(changes: dict[str, Any]) -> None:
    assert _id(**changes) == _id()
