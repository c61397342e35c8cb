"""Incidents by cause, most severe first."""

from __future__ import annotations

from typing import Any

import pytest

from pandaeval_collector.show.report.incidents import (
    BARS,
    SPARKS,
    Incident,
    IncidentRow,
    TimeSpan,
    by_agent,
    incidents,
    known_ids,
    over_time,
)
from pandaeval_collector.store import FailureGroupRow
from pandaeval_collector.store.failing import FailedResult
from pandaeval_collector.store.rates import AgentBucket
from pandaeval_collector.store.triage import Triage

SPAN = TimeSpan(0, 24_000)


def failed(no: int, at: int, agent: str = "a", group: str = "g", **changed: Any) -> FailedResult:
    said = {"metric": "trace.response", "label": "error", "severity": "high", "reason": "", "step": ""} | changed
    return FailedResult(no, at, agent, seq=no, group=group, **said)


def group(
    id_: str, severity: str = "high", text: str = "it broke", first_at: float = 0.0, label: str = "error"
) -> FailureGroupRow:
    facts = ("trace.response", label, f"{label}: {text}", text, severity, "a", "s", text)
    names = ("metric", "label", "title", "description", "severity", "agent", "service", "text")
    more = {name: "" for name in ("tool", "cause") if name in FailureGroupRow.__dataclass_fields__}
    return FailureGroupRow(
        id=id_, count=1, first_at=first_at, last_at=first_at, **dict(zip(names, facts, strict=True)), **more
    )


def test_the_same_cause_at_several_agents_is_one_incident() -> None:
    rows = [failed(1, 100, "a", "one"), failed(2, 200, "b", "two"), failed(2, 200, "b", "two")]
    [found] = incidents(rows, {"one": group("one", text="item 17 broke"), "two": group("two", text="item 18 broke")})
    assert (len(found.at), [*found.agents], [*found.groups]) == (2, ["a", "b"], ["one", "two"])
    assert (found.first_ever, found.newest.at) == (0, 200)


def test_failures_without_a_group_are_grouped_by_metric_and_reason() -> None:
    rows = [
        failed(1, 100, group="", reason="400: call 1"),
        failed(2, 100, group="", reason="400: call 2"),
        failed(3, 100, group="", reason="timeout"),
    ]
    assert sorted(len(each.at) for each in incidents(rows, {})) == [1, 2]


def test_known_ids_contain_the_incident_ids_of_every_window() -> None:
    rows = [failed(no, no, group="", reason="timeout") for no in (1, 2)]
    rows += [failed(-3, 3, group="one", step=""), failed(4, 4, group="", reason="400", step="s")]
    groups = {"one": group("one")}
    known = known_ids(rows, groups)
    assert len(known) == 3
    for since in range(len(rows)):
        for each in incidents(rows[since:], groups):
            assert {each.id, *each.ids} <= known


@pytest.mark.parametrize(
    ("first_ever", "times", "trend"),
    [
        (18_000, [18_000], "begun"),
        (17_999, [17_999, 20_000], ""),
        (0, [1_000, 19_000, 20_000, 21_000], "rising"),
        (0, [1_000, 2_000, 3_000, 4_000, 5_000, 6_000, 19_000, 20_000, 21_000], ""),
        (15_000, [15_000, 16_000, 17_000, 19_000, 20_000, 21_000, 22_000, 23_000], ""),
        (15_000, [15_000, 18_000, 19_000, 20_000, 21_000, 22_000, 23_000], "rising"),
    ],
)  # fmt: skip
def test_trend_is_begun_or_rising_by_first_and_recent_failures(first_ever: int, times: list[int], trend: str) -> None:
    found = Incident("i", "m", "l", "high", failed(1, times[-1]), first_ever, at=dict(enumerate(times)))
    assert found.trend(SPAN) == trend


def test_incidents_are_ranked_by_state_severity_false_success_newness_and_count() -> None:
    def one(label: str, severity: str, count: int, first: int = 0) -> Incident:
        return Incident("i", "m", label, severity, failed(1, 1), first, at=dict.fromkeys(range(count), 1))

    wanted = [
        one("false_success", "critical", 1),
        one("unsafe", "critical", 9),
        one("loop", "high", 1, 20_000),
        one("error", "high", 60),
        one("slow", "low", 99),
    ]
    assert sorted([*wanted[3:], *wanted[:3]], key=lambda each: each.rank(SPAN)) == wanted
    assert wanted[0].rank(SPAN, "muted") > wanted[-1].rank(SPAN, "known")


def test_findings_about_the_same_step_are_one_incident_named_by_the_most_severe() -> None:
    def loop(no: int, **changed: Any) -> list[FailedResult]:
        call = failed(no, no, group="", severity="medium", label="repeated", metric="turn.calls", step="call 4")
        return [call, failed(no, no, group="", label="loop", metric="trace.loop", step="call 4", **changed)]

    [found] = incidents([*loop(1), *loop(2)], {})
    assert (found.label, found.severity, [*found.also]) == ("loop", "high", [("turn.calls", "repeated")])
    [grown] = incidents([*loop(1), *loop(2)[:1]], {})
    assert (grown.label, len(grown.at)) == ("loop", 2), "a repeated call before the loop has the same cause"
    elsewhere = failed(1, 1, group="", label="late", metric="trace.late", step="call 9")
    assert len(incidents([*loop(1), elsewhere], {})) == 2
    nowhere = [failed(1, 1, group="", label=label, metric=label) for label in ("late", "rude")]
    assert len(incidents(nowhere, {})) == 2, "neither names a step"


@pytest.mark.parametrize(
    ("count", "among", "severity"),
    [(60, 176, "high"), (10, 100, "high"), (10, 101, "medium"), (9, 9, "medium"), (2, 176, "medium")],
)
def test_severity_rises_if_a_cause_affects_many_runs(count: int, among: int, severity: str) -> None:
    [crash] = incidents([failed(no, no, severity="medium", group="") for no in range(1, count + 1)], {})
    crash.weigh({"a": among, "shop": 9_000}, {})
    assert (crash.severity, crash.among) == (severity, among)
    [grave] = incidents([failed(no, no, severity="high") for no in range(1, count + 1)], {})
    grave.weigh({"a": among}, {"g": {1, 2, 3}})
    assert (grave.severity, grave.dismissed) == ("high", 3), "only dangerous failures are critical"


def test_a_session_verdict_absorbs_the_findings_of_the_run_it_blames() -> None:
    verdict = {"metric": "session.correctness", "label": "false_statement", "trace_id": "t1", "step": "answer"}
    lie = {"metric": "trace.grounding", "label": "made_up_value", "group": "lie"}
    judged, found = failed(-1, 2, group="v", **verdict), failed(1, 1, **lie, trace_id="t1", step="model call")
    [one] = incidents([found, judged], {})
    assert (one.label, [*one.groups], [*one.also]) == ("false_statement", ["v", "lie"], [(lie["metric"], lie["label"])])
    row = IncidentRow.of(one, SPAN, Triage(), "", {"trace_id": "the session's last"})
    assert row.trace_id == "t1", "the run that it blames"
    success = failed(1, 1, label="false_success", severity="critical", trace_id="t1", step="model call")
    [one] = incidents([success, judged], {})
    assert (one.label, one.severity, one.rank(SPAN)[1]) == ("false_statement", "critical", False), "ranks first"
    others = [failed(2, 3, **lie, trace_id="t2", step="other"), failed(3, 3, **lie, trace_id="t3", step="other")]
    assert len(incidents([judged, *others[:1]], {})) == 2, "the verdict blames another run"
    assert len(incidents([found, *others, judged], {})) == 2, "a verdict does not absorb findings in three runs"


@pytest.mark.parametrize(
    ("given", "state", "back_at"),
    [
        ({}, "new", None),
        ({"one": Triage("known")}, "known", None),
        ({"one": Triage("resolved", at=200)}, "resolved", None),
        ({"one": Triage("resolved", at=100)}, "new", 150),
        ({"one": Triage("muted", at=100)}, "muted", None),
    ],
)
def test_a_resolved_incident_that_returns_is_new(given: dict[str, Triage], state: str, back_at: int | None) -> None:
    rows = [failed(no, at, group="one") for no, at in ((1, 90), (2, 150), (3, 200))]
    [found] = incidents(rows, {"one": group("one")})
    triage = found.triage(given)
    assert (triage.state, triage.back_at) == (state, back_at)


def test_the_most_urgent_triage_state_of_several_groups_counts() -> None:
    rows = [failed(1, 100, "a", "one"), failed(2, 200, "b", "two")]
    [found] = incidents(rows, {"one": group("one"), "two": group("two")})
    assert found.triage({"one": Triage("muted")}).state == "new", "the group of agent b has no state"
    assert found.triage({"one": Triage("muted"), "two": Triage("known", "later")}).note == "later"


def test_charts_and_agent_figures_cover_the_window() -> None:
    assert SPAN.step == 1000
    assert TimeSpan(0, 86_400_000).step == 1_200_000
    assert SPAN.spark([-5, 0, 999, 23_999, 24_000]) == [3, *[0] * (SPARKS - 2), 2]
    rows = [AgentBucket(0, "a", 3, 1), AgentBucket(BARS, "b", 2, 2)]
    runs, bad = over_time(rows)
    assert (runs[0], bad[0], runs[-1], bad[-1], sum(runs)) == (3, 1, 2, 2, 5)
    [b, a] = by_agent(rows, {"a": [(1000, 10, None), (3000, 30, 0.5)]})
    assert (b.agent, b.failed, b.us, b.spark[-1], b.bad[-1]) == ("b", 2, None, 2, 2)
    assert (a.us, a.us95, a.tokens, a.usd) == (2000, 3000, 20, 0.5)
