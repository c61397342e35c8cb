"""Terminal tables and page show the same texts and order."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from pandaeval_collector.base.result import Result
from pandaeval_collector.base.score import Score, Unscored, Why
from pandaeval_collector.show.view.rates import OutcomeCounts
from pandaeval_collector.show.view.results import spelled_out
from pandaeval_collector.show.view.unscored import unjudged_text
from pandaeval_lab.report.page import ReportOrigin
from pandaeval_otel.model import Trace
from support.judged import trace
from support.reports import report, result, tables

INLINE = {"basis": "inline"}
TASK, VERDICT = "trace.task_completion", "session.correctness"


def _traces(count: int) -> list[Trace]:
    made = trace()
    return [
        replace(
            made,
            trace_id=f"{number:032x}",
            session_id=f"s{number % 7}" if number % 5 else None,
            error="boom" if number % 11 == 0 else None,
            spans=tuple(replace(span, start_ns=number * 10**9) for span in made.spans),
        )
        for number in range(count)
    ]


@pytest.mark.parametrize("seed", range(5))
def test_tables_and_page_have_the_same_order(seed: int) -> None:
    chance, traces = random.Random(seed), _traces(40)
    findings: list[Any] = [0.0, 0.3, 0.5, 0.8, 1.0, Unscored(Why.NO_CONTENT, "nothing")]
    results = [
        result(each, name, chance.choice(findings), threshold=chance.choice([0.5, 0.9]))
        for each in traces
        for name in ("coherence", "tool_loop")
    ]
    page = report(traces, results).index
    rows = {"s": page["sessions"], "t": page["traces"]}
    on_page = [rows[kind][at]["id"] for kind, at in page["order"]]
    printed = tables(traces, results).partition("Metrics")[0].splitlines()[3:]
    in_table = [line.removeprefix("trace ").split()[0] for line in printed if line.split()]
    assert in_table == [id_ if id_.startswith("s") else id_[:12] for id_ in on_page]


def _session(score: float, label: str, coverage: float = 1.0, **metadata: Any) -> Result:
    return result(
        "s1", "agent_reliability", Score(score, "because", {**INLINE, **metadata}, label=label, coverage=coverage),
        level="session",
    )  # fmt: skip


def _inline(score: float, label: str, coverage: float = 1.0) -> tuple[str, dict[str, Any]]:
    """Return a session's table text and page text."""
    [run] = [replace(each, session_id="s1") for each in _traces(2)[1:]]
    results = [
        result(run, "coherence", 1.0),
        result(run, "response", 1.0),
        result(run, "brevity", 1.0),
        _session(score, label, coverage),
    ]
    return tables([run], results), report([run], results).index["sessions"][0]["results"][0]


def test_no_problem_found_has_no_number_and_states_that_success_was_not_judged() -> None:
    printed, shown = _inline(1.0, "no_problem_found", 0.6)
    assert (shown["says"], shown["basis"]) == ("no problem found", "inline")
    spelled = "no problem found by rule checks; task success: not judged"
    assert shown["spelled"] == spelled
    row = printed.splitlines()[3]
    assert spelled in row
    cells = row.split(spelled)[0].split()
    assert cells[-3:] == ["no", "problem", "found"], "no number, because 1.00 would look reliable"


def test_a_found_problem_is_shown_with_its_cause() -> None:
    [run] = [replace(each, session_id="s1") for each in _traces(2)[1:]]
    results = [result(run, "tool_loop", 0.2), _session(0.2, "problem_found")]
    row = tables([run], results).splitlines()[3]
    assert "0.20 problem found" in row
    assert row.rstrip().endswith("trace.tool_loop 0.20 (fail): as composed")


def test_a_failed_trace_result_is_shown_instead_of_the_session_score() -> None:
    [run] = [replace(each, session_id="s1") for each in _traces(2)[1:]]
    whole = result("s1", "agent_reliability", 0.1, level="session")
    for results in ([whole, result(run, "response", 0.4)], [result(run, "response", 0.4), whole]):
        assert tables([run], results).splitlines()[3].rstrip().endswith("trace.response 0.40 (fail): as composed")
    only = tables([run], [result(run, "response", 0.8), whole]).splitlines()[3]
    assert only.rstrip().endswith("session.agent_reliability 0.10 (fail): as composed")


def test_a_judged_score_is_shown_as_a_number() -> None:
    [run] = [replace(each, session_id="s1") for each in _traces(2)[1:]]
    results = [result(run, "coherence", 0.8), result("s1", "agent_reliability", 0.97, level="session")]
    shown = report([run], results).index["sessions"][0]["results"][0]
    assert "says" not in shown
    row = tables([run], results).splitlines()[3]
    assert "0.97" in row
    assert row.rstrip().endswith("trace.coherence 0.80 (pass): as composed")


def test_the_summary_of_rule_checks_is_taken_from_the_reason() -> None:
    checks = "2 findings by rules (response in 2 traces); task success: not judged"
    assert spelled_out("problem_found", f"{checks}; highest risk 1.00, from response in trace 1 of 3") == checks
    assert (
        spelled_out("problem_found", "of an older version") == "problem found by rule checks; task success: not judged"
    )


@pytest.mark.parametrize(
    ("tallies", "judge", "said"),
    [
        ({"trace.response": OutcomeCounts(3)}, None, "no model is configured (judge.model, or --model of evaluate)"),
        ({TASK: OutcomeCounts(unscored=Counter(judge_failed=3))}, "m", "no run has a verdict (judge_failed 3)"),
        ({"trace.response": OutcomeCounts(3)}, "m", "task_completion did not run"),
        ({VERDICT: OutcomeCounts(unscored=Counter(judge_failed=2))}, "m", "no run has a verdict (judge_failed 2)"),
    ],
)
def test_the_note_names_why_task_success_was_not_judged(
    tallies: dict[str, OutcomeCounts], judge: str | None, said: str
) -> None:
    assert unjudged_text(tallies, 3, judge).startswith(f"Task success was not judged: {said}")


def test_the_note_states_that_rules_cannot_show_success() -> None:
    assert unjudged_text({"trace.response": OutcomeCounts(3)}, 3, None).endswith(
        "Rules cannot show whether a task was done or an answer is right."
    )


def test_there_is_no_note_if_all_runs_were_judged() -> None:
    assert unjudged_text({TASK: OutcomeCounts(3)}, 3, "m") == ""
    assert unjudged_text({TASK: OutcomeCounts(2)}, 3, "m") == "Task success was judged in 2 of 3 runs."
    assert unjudged_text({}, 0, None) == ""


def test_page_and_tables_show_the_note_on_unjudged_success() -> None:
    runs = _traces(3)
    results = [result(each, "response", 1.0) for each in runs]
    said = "Task success was not judged: no model is configured"
    assert said in tables(runs, results)
    page = report(runs, results, ReportOrigin()).index
    assert said in page["unasked"]
    assert page["judged"] == ""
    judged = [*results, *(result(each, "task_completion", 0.9, kind="llm") for each in runs)]
    assert "Task success was not judged" not in tables(runs, judged, "judge-1")
    page = report(runs, judged, ReportOrigin(judge="judge-1")).index
    assert (page["unasked"], page["judged"]) == ("", ""), "correctness was not evaluated"


def test_the_share_of_correct_sessions_comes_first_with_its_interval() -> None:
    runs = [replace(each, session_id=f"s{at}") for at, each in enumerate(_traces(5)[1:])]
    wrong = Score(0.1, "It was refused.", {"first_wrong_step": "turn 2"}, label="needless_refusal")
    found = [wrong, 0.9, 0.8, Unscored(Why.JUDGE_FAILED, "nobody there")]
    results = [result(run, "response", 1.0) for run in runs]
    results += [result(f"s{at}", "correctness", each, level="session") for at, each in enumerate(found)]
    headline = "2 of 3 sessions were handled correctly: 67% (21% to 94%); 1 not judged (judge_failed 1)"
    first, _, _, worst, *_ = (printed := tables(runs, results)).splitlines()
    assert first == headline
    assert worst.split()[3:5] == ["no", "0.10"]
    assert worst.rstrip().endswith("needless refusal at turn 2: It was refused.")
    assert "not judged" in printed.splitlines()[6]
    assert report(runs, results).index["judged"] == headline


def test_the_headline_uses_the_singular_for_one_run() -> None:
    assert OutcomeCounts(scored=1, passed=1).handled("run") == "1 of 1 run was handled correctly: 100% (21% to 100%)"


def test_a_metric_that_counts_only_failures_shows_no_pass_rate() -> None:
    counts = OutcomeCounts(scored=100, failed=4)
    assert (counts.text, counts.share) == ("4 of 100 failed", None)
    assert OutcomeCounts(scored=4, failed=4).text == "0.000 passed of 4 (4 failed)"
    assert OutcomeCounts(scored=6, failed=4, unclear=2).share == 0
