"""The live page matches a report and contains no trace text."""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import replace
from typing import Any
from urllib.parse import unquote

import orjson

from pandaeval_collector.base.result import Result
from pandaeval_collector.base.score import Assumed, Score, Unscored, Why
from pandaeval_collector.pipeline.line.listing import shown_facts
from pandaeval_collector.show.report.index import LiveIndex
from pandaeval_collector.show.report.text import live_shell
from pandaeval_collector.show.view.results import shown
from pandaeval_collector.store.listed_pages import Listed, ListedSession
from pandaeval_otel.model import Trace
from support.judged import trace
from support.reports import report, result


def _stored(made: Trace, results: list[Result], no: int = 1) -> Listed:
    said = {f"trace.{each.metric}": orjson.loads(each.to_json()) for each in results}
    return Listed(no, made.session_id, 0.1, 1, orjson.loads(orjson.dumps(shown_facts(made))), said)


def _made(number: int, session: str | None = "s") -> Trace:
    return replace(trace(), trace_id=f"{number:032x}", session_id=session, service="shop")


def _results(made: Trace) -> list[Result]:
    return [
        result(made, "coherence", Score(0.4, "r" * 300, {"calibrated": 0.1, "note": "n"}, span_ids=("a" * 16,))),
        result(made, "loop_detection", Assumed("first answer")),
        result(made, "tool_loop", Unscored(Why.METRIC_ERROR, "oops")),
        result(made, "task_completion", Score(0.25, "why", raw=2.0, scale="1-5"), kind="llm", threshold=3.0),
    ]


def test_stored_and_new_results_are_shown_alike() -> None:
    for each in _results(_made(1)):
        assert shown(orjson.loads(each.to_json())) == shown(each.to_dict())
    whole = result("s", "agent_reliability", Score(0.1, "bad", {"per_trace_signals": {"0" * 32: {"step_risk": 0.9}}}))
    assert shown(orjson.loads(whole.to_json())) == shown(whole.to_dict())


def test_the_live_index_of_a_trace_equals_that_of_its_report() -> None:
    made = _made(1)
    live, index = LiveIndex({"s": [made.trace_id, "f" * 32]}), report([made], _results(made)).index
    live.trace(_stored(made, _results(made)))
    found = live.made(None, ())
    only_in_files = ("block", "rank")
    expected = {key: held for key, held in index["traces"][0].items() if key not in only_in_files}
    assert orjson.loads(orjson.dumps(found["traces"][0])) == expected
    assert found["metrics"] == index["metrics"]
    assert found["order"] == [["t", 0]]
    assert found["sessions"][0]["members"] == [made.trace_id, "f" * 32]


def test_a_session_in_a_list_has_its_worst_trace_counts_and_states() -> None:
    made, alone = _made(1, "a/b\u202e%"), _made(2, None)
    score = Score(1.0, "fine", {"basis": "inline"}, label="no_problem_found")
    whole = orjson.loads(result("a/b\u202e%", "agent_reliability", score, level="session").to_json())
    live = LiveIndex()
    row = _stored(made, _results(made))
    said: dict[str, Any] = {"session.agent_reliability": whole}
    live.unit(ListedSession("a/b\u202e%", 3, (0.1, 1), 60, 2, 5, 9, True, row, said, [10.75, 0.25, 9.5, 12.0]), [row])
    single = _stored(alone, [], 2)
    live.unit(ListedSession(None, 2, (0.2, 2), 1, 1, 7, 7, True, single, {}), [single])
    live.unit(ListedSession("late", 4, (10.5, -4), 0, 0, 0, 0, False, None, {}), [])
    found = live.made(None, ())
    assert found["order"] == [["s", 0], ["t", 1], ["s", 1]]
    first = found["sessions"][0]
    assert unquote(first["href"]) == "a/b\u202e%"
    assert re.fullmatch(r"[\w.~%-]+", first["href"])
    assert (first["count"], first["failing"], first["states"]) == (60, 2, [0.75, 0.25, 0.49, "none"])
    assert first["results"][0]["spelled"].startswith("no problem found by rule checks")
    assert "members" not in first


def test_the_security_policy_allows_exactly_the_scripts_and_styles_of_the_page() -> None:
    page, policy = live_shell()
    bodies = re.findall(r"<script>(.*?)</script>|<style>(.*?)</style>", page, re.DOTALL)
    digests = {base64.b64encode(hashlib.sha256("".join(each).encode()).digest()).decode() for each in bodies}
    assert set(re.findall(r"sha256-([^']*)'", policy)) == digests
    assert f'content="{policy}"' in page
    assert "connect-src 'self'" in policy
    assert "unsafe" not in policy
    assert "connect-src" not in report([], []).page


def test_the_page_loads_nothing_external_and_never_parses_text_as_markup() -> None:
    page, _ = live_shell()
    assert re.findall(r"<(?:link|img|iframe|object|embed|source|video|audio)\b[^>]*>", page) == [
        '<link rel="icon" href="data:,">'
    ]
    own = re.sub(r"<!--.*?-->|/\*! https://github.com/leeoniya/uPlot .*?\*/", "", page, flags=re.DOTALL)
    assert not re.findall(r"@import|url\(|sourceMappingURL|https?://", own)
    assert not re.findall(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function", page)
    assert page.count("The MIT License") == 1
