"""The report file: complete, ranked, safe."""

from __future__ import annotations

import base64
import hashlib
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from pandaeval_collector.base.score import Assumed, Score, Unscored, Why
from pandaeval_collector.show.report import text as scripts
from pandaeval_collector.show.report.text import _names
from pandaeval_lab.report import page as pages
from pandaeval_otel.model import Span, Trace
from support.judged import trace
from support.reports import report, result

ASSETS = Path(scripts.__file__).parent / "assets"
HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>{{ script }}<!-- data -->\u202e"


def _trace(number: int, session: str | None = "s", **fields: object) -> Trace:
    made = trace(**fields)  # type: ignore[arg-type]
    start = number * 10**9
    spans = tuple(replace(span, start_ns=start, end_ns=start + 10**9) for span in made.spans)
    return replace(made, trace_id=f"{number:032x}", session_id=session, spans=spans, service="shop")


def test_failed_runs_come_first_then_the_lowest_signals() -> None:
    traces = [_trace(1, "good"), _trace(2, "bad"), _trace(3, "none"), _trace(4, None), _trace(5, "passes low")]
    found = report(
        traces,
        [
            result(traces[0], finding=0.9),
            result(traces[1], finding=0.4),
            result(traces[2], finding=Unscored(Why.NO_CONTENT, "nothing")),
            result(traces[3], finding=0.2),
            result(traces[4], finding=0.1, threshold=0.05),
        ],
    ).index
    names = [found["sessions" if kind == "s" else "traces"][at]["id"].lstrip("0") for kind, at in found["order"]]
    assert names == ["4", "bad", "passes low", "good", "none"]


def test_a_crashed_run_ranks_as_failed() -> None:
    crashed = replace(_trace(1, "crashed"), error="boom")
    fine = _trace(2, "fine")
    found = report([crashed, fine], [result(crashed, finding=0.9), result(fine, finding=0.6)]).index
    assert [found["sessions"][at]["id"] for _, at in found["order"]] == ["crashed", "fine"]
    assert found["traces"][0]["error"] == "boom"


def test_traces_of_a_session_are_ordered_by_start() -> None:
    traces = [_trace(number) for number in (3, 1, 2)]
    found = report(traces, [])
    assert [found.index["traces"][at]["id"][-1] for at in found.index["sessions"][0]["traces"]] == ["1", "2", "3"]


def test_only_the_newest_revision_of_a_result_is_shown() -> None:
    made = _trace(1)
    found = report([made], [result(made, finding=0.3), result(made, finding=0.8, revision=2)])
    [short], [full] = found.index["traces"][0]["results"], found.details[0]["results"]
    assert short["score"] == 0.8
    assert full["reason"] == "as composed"


def test_each_turn_of_a_trace_has_its_own_result() -> None:
    made = _trace(1)
    turns = [result(made, "helpfulness", score, level="turn") for score in (0.2, 0.9)]
    turns = [replace(each, unit=replace(each.unit, id=f"turn {at}")) for at, each in enumerate(turns)]
    found = report([made], turns)
    assert [each["score"] for each in found.index["traces"][0]["results"]] == [0.2, 0.9]
    assert found.index["metrics"]["turn.helpfulness"]["asked"] is True


def test_task_results_are_listed_separately() -> None:
    made = result(_trace(1), "pass_at_k", 0.25, level="task")
    made = replace(made, unit=replace(made.unit, id="case 7", trace_id="", session_id=None))
    [other] = report([], [made]).index["others"]
    assert (other["unit"], other["score"]) == ("case 7", 0.25)


def test_scored_assumed_and_unscored_results_have_different_fields() -> None:
    made = _trace(1)
    found = report(
        [made],
        [
            result(made, "coherence", Score(0.4, "r", {"calibrated": 0.1})),
            result(made, "loop_detection", Assumed("first answer")),
            result(made, "tool_loop", Unscored(Why.METRIC_ERROR, "oops")),
        ],
    )
    scored, assumed, unscored = found.index["traces"][0]["results"]
    assert (scored["signal"], scored["success"]) == (0.1, False)
    assert assumed["outcome"] == "assumed"
    assert "signal" not in assumed
    assert "score" not in unscored
    assert unscored["why"] == "metric_error"


def test_unscored_results_are_counted_by_reason_with_advice() -> None:
    dark, cut_off = _trace(1), _trace(2)
    nothing, late = Unscored(Why.NO_CONTENT, "no text"), Unscored(Why.TIMEOUT, "too slow")
    results = [result(dark, finding=nothing), result(dark, "loop_detection", nothing), result(cut_off, finding=late)]
    first, second = report([dark, cut_off], results).index["unscored"]
    assert (first["why"], first["count"]) == ("no_content", 2)
    assert first["metrics"] == {"trace.coherence": 1, "trace.loop_detection": 1}
    assert "judge.timeout" in second["cure"]


@pytest.mark.parametrize("why", list(Why))
def test_every_reason_for_no_score_has_advice(why: Why) -> None:
    made = _trace(1)
    [entry] = report([made], [result(made, finding=Unscored(why, "so"))]).index["unscored"]
    assert entry["cure"]


def test_metrics_that_did_not_run_are_listed() -> None:
    made = _trace(1)
    metrics = report([made], [result(made)]).index["metrics"]
    assert metrics["trace.coherence"]["asked"] is True
    assert metrics["trace.task_completion"]["asked"] is False


def test_session_results_include_the_risk_of_each_trace() -> None:
    made = _trace(1)
    score = Score(0.1, "bad", {"per_trace_signals": {made.trace_id: {"step_risk": 0.9}}, "band": "high_risk"})
    [session] = report([made], [result("s", "agent_reliability", score, level="session")]).index["sessions"]
    assert session["results"][0]["risks"] == {made.trace_id: {"step_risk": 0.9}}
    assert session["results"][0]["metadata"]["band"] == "high_risk"


def test_only_the_worst_traces_keep_their_spans_in_a_large_report(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "MAX_DETAILED", 2)
    traces = [_trace(number, None) for number in range(4)]
    found = report(traces, [result(each, finding=at / 4) for at, each in enumerate(traces)])
    assert set(found.details) == {0, 1}
    assert [("block" in each) for each in found.index["traces"]] == [True, True, False, False]


def test_trace_content_changes_nothing_outside_the_encoded_data_of_the_page() -> None:
    made = replace(_trace(1, HOSTILE, user=HOSTILE, answer=HOSTILE), agent=HOSTILE, service=HOSTILE, error=HOSTILE)
    page = report([made], [result(made, finding=Score(0.1, HOSTILE, {HOSTILE: [HOSTILE]}, label=HOSTILE))]).page
    assert "onerror" not in page.partition("<script>")[0]
    assert "alert(" not in page
    clean = report([], []).page
    skeleton = re.compile(r'<script type="application/octet-stream" id="[\w-]+">[A-Za-z0-9+/=]*</script>\n')
    assert skeleton.sub("", page) == skeleton.sub("", clean)


def test_the_security_policy_allows_exactly_the_scripts_and_styles_of_the_page() -> None:
    page = report([], []).page
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None
    assert "default-src 'none'" in policy[1]
    assert "unsafe" not in policy[1]
    bodies = re.findall(r"<script>(.*?)</script>|<style>(.*?)</style>", page, re.DOTALL)
    digests = {base64.b64encode(hashlib.sha256("".join(each).encode()).digest()).decode() for each in bodies}
    assert set(re.findall(r"sha256-([^']*)'", policy[1])) == digests
    assert len(digests) == 3


def test_the_page_loads_nothing_external() -> None:
    page = report([_trace(1)], []).page
    assert not re.findall(r"<(?:link|img|iframe|object|embed|source|video|audio)\b", page)
    assert not re.findall(r"<\w+[^>]*\s(?:src|href)\s*=\s*[\"']?(?!#)[a-z/]", page)
    assert not re.findall(r"@import|url\(|sourceMappingURL", page)


def test_the_scripts_never_parse_text_as_markup() -> None:
    script = report([], []).page.rpartition("<script>")[2]
    assert not re.findall(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function", script)


def _span() -> Span:
    return trace().spans[0]


def test_the_chart_library_and_its_licence_are_named() -> None:
    from pathlib import Path

    page = report([], []).page
    banner = re.search(r"leeoniya/uPlot \(v([\d.]+)\)", page)
    assert banner is not None
    assert f"uPlot {banner[1]}," in (Path(__file__).parents[4] / "collector/NOTICE").read_text()
    assert page.count("The MIT License (MIT)") == 1


@pytest.mark.parametrize("kind", ["live", "file"])
def test_scripts_define_no_top_level_name_twice(kind: str) -> None:
    """All scripts of a page share one scope: a second function of the same name replaces the first."""
    texts = [(ASSETS / name).read_text("utf-8") for name in _names("js", kind)]
    found = Counter(re.findall(r"^(?:async )?(?:function|const|let|class) (\w+)", "\n".join(texts), re.MULTILINE))
    assert len(found) > 100
    assert [name for name, times in found.items() if times > 1] == []
