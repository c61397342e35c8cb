"""The live page in Chromium."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from itertools import pairwise
from pathlib import Path

import httpx
import pytest

from support.chromium import Page, chromium
from support.collector import CollectorProcess
from support.incident_mix import mix
from support.judged_files import send
from support.recent import recent
from support.ungrounded import booking, post, silent

PROGRAM = chromium()
pytestmark = pytest.mark.skipif(PROGRAM is None, reason="no Chromium here (Debian: apt-get install chromium)")
CAPTURES = Path(__file__).parents[1] / "golden" / "captures"
HOSTILE = (
    "</script><script>window.hit = 1</script><img src=x onerror='window.hit = 2'>"
    "<svg onload=hit>{{7*7}}${7*7}/..%2f\u202e"
)
_NOTE_LABELS = """(() => {
    const canvas = CanvasRenderingContext2D.prototype, drawn = canvas.fillText;
    window.labels = {};
    canvas.fillText = function (text, x, ...more) {
        const half = this.measureText(text).width / 2;
        if (/[-:]/.test(text)) window.labels[text] = [x - half, x + half, text];
        return drawn.call(this, text, x, ...more);
    };
})()"""


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CollectorProcess]:
    folder = tmp_path_factory.mktemp("page")
    files = [sorted(CAPTURES.glob(f"*/{name}.otlp.jsonl"))[0] for name in ("good_session", "tool_loop", "crashed")]
    settings = {
        "PANDAEVAL_UI__LINKS": '{"Jaeger": "http://localhost:16686/trace/{trace_id}?s={session_id}"}',
    }
    with CollectorProcess(folder / "collector", settings) as running:
        running.start()
        send(running, recent(files, folder / "recent"))
        post(running.http, booking())
        post(running.http, booking(HOSTILE, HOSTILE, HOSTILE))
        post(running.http, silent())
        running.until(lambda: {"table-for-four", "silent", HOSTILE} <= _sessions(running), "done with all")
        running.until(running.at_rest, "at rest")
        yield running


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    assert PROGRAM is not None
    with Page(PROGRAM, tmp_path_factory.mktemp("chromium")) as opened:
        yield opened


@pytest.fixture(autouse=True)
def _calm(page: Page, collector: CollectorProcess) -> Iterator[None]:
    """Fail for console errors and foreign requests."""
    page.requests.clear()
    page.complaints.clear()
    yield
    assert page.complaints == []
    assert all(address.startswith((f"{collector.http}/", "about:blank")) for address in page.requests)


def test_three_clicks_lead_from_the_overview_to_the_wrong_step_of_a_session(
    page: Page, collector: CollectorProcess
) -> None:
    page.visit(f"{collector.http}/")
    assert page.text("h1").startswith("Not judged: ")
    assert page.text("h1").endswith(" runs have findings")
    assert "'LX-48213' does not appear in any tool result" in page.text(".incidents")
    page.run("[...document.querySelectorAll('.row.unit')].find((row) => row.innerText.includes('LX-')).click()")
    page.wait("document.querySelector('.lead .id')?.innerText === 'table-for-four'")
    assert page.text("h1") == "Book me a table for four at Lucia's on Friday evening, please."
    assert "Book me a table for four" in page.text(".talk .user")
    page.click(".row.trace.bad")
    page.wait("document.querySelector('.fall') !== null")
    assert page.texts(".line.answer mark.loose") == ["LX-48213"]
    assert page.count(".line.pointed") == page.count(".panel") == 1, "the first wrong step must be opened automatically"
    assert "'LX-48213' does not appear in any tool result or user message" in page.text(".panel")
    assert "LX-48213" in page.texts(".panel mark")
    page.run("[...document.querySelectorAll('.line')].find((line) => line.innerText.includes('book_table')).click()")
    [link] = page.run("[...document.querySelectorAll('.beyond a')].map((each) => each.href)")
    assert link.startswith("http://localhost:16686/trace/")
    assert link.endswith("?s=table-for-four")


def test_filters_are_kept_in_the_address(page: Page, collector: CollectorProcess) -> None:
    page.visit(f"{collector.http}/")
    listed = page.count(".row.unit")
    page.run(
        "(() => { const field = document.getElementById('by-agent'); field.value = 'table_booking'; "
        "field.dispatchEvent(new Event('change')); })()"
    )
    page.wait(f"document.querySelectorAll('.row.unit').length < {listed}")
    assert page.run("location.hash") == "#/?agent=table_booking"
    assert page.run("document.activeElement.id") == "by-agent"
    page.visit(f"{collector.http}/#/traces?metric=trace.tool_loop&failed=1&window=7d")
    assert page.count(".row.trace") == page.count(".row.trace.bad") == 1
    assert "1 of 9 traces matches in the last 7 days" in page.text()
    page.run("document.getElementById('search').focus()")
    page.press(*"nobody said that")
    page.wait("document.querySelectorAll('.row.trace').length === 0")
    assert page.run("document.getElementById('search').value") == "nobody said that"


def test_lists_can_be_filtered_by_verdict_label_attribute_duration_and_cost(
    page: Page, collector: CollectorProcess
) -> None:
    page.visit(f"{collector.http}/#/traces")
    every = page.count(".row.trace")
    choose = "(([name, value]) => { const field = document.getElementById(`by-${name}`); field.value = value; "
    choose += "field.dispatchEvent(new Event('change')); })"
    page.run(f"{choose}(['failed', '0'])")
    page.wait(f"document.querySelectorAll('.row.trace').length < {every}")
    assert page.count(".row.trace.bad") == 0
    page.visit(f"{collector.http}/#/traces?label=loop")
    assert page.count(".row.trace") == page.count(".row.trace.bad") == 1
    assert page.count(".more-filters[open]") == 1
    page.run(f"{choose}(['min_seconds', '86400'])")
    page.wait("document.querySelectorAll('.row.trace').length === 0")
    page.visit(f"{collector.http}/#/traces?min_usd=1000")
    assert page.count(".row.trace") == 0
    page.visit(f"{collector.http}/#/traces?attribute=service.version=none")
    assert page.count(".row.trace") == 0
    page.visit(f"{collector.http}/#/traces?failed=none")
    assert 0 < page.count(".row.trace") < every


def test_a_named_view_is_saved_in_the_browser_and_can_be_removed(page: Page, collector: CollectorProcess) -> None:
    page.visit(f"{collector.http}/#/traces?label=loop")
    page.run("document.querySelector('.keeping summary').click()")
    page.run("document.querySelector('.keeping input').focus()")
    page.press(*"Loops", "Enter")
    page.wait("document.querySelector('.views-kept .pill[aria-current]') !== null")
    page.visit(f"{collector.http}/#/sessions")
    page.click(".views-kept .pill a")
    page.wait("document.querySelector('h1').innerText === 'Traces'")
    assert page.run("location.hash") == "#/traces?label=loop"
    page.click(".views-kept .pill button")
    assert page.count(".views-kept .pill") == 0
    page.visit(f"{collector.http}/#/sessions")
    assert page.count(".views-kept .pill") == 0


def test_unscored_runs_are_not_shown_as_a_success(page: Page, collector: CollectorProcess) -> None:
    page.visit(f"{collector.http}/#/?agent=mute")
    assert page.text("h1") == "Nothing could be scored in the last 24 hours"
    assert "not scored: no content" in page.text(".row.unit")
    assert page.text(".unasked").startswith("Task success was not judged: no model is configured")
    assert page.texts("h2")[0] == "Not scored last 24 hours"
    assert "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_ONLY" in page.texts(".setting code")
    found = "fetch('/api/v1/traces?agent=mute').then((answer) => answer.json())"
    page.run(f"{found}.then((body) => {{ location.hash = `#/trace/${{body.items[0].trace_id}}`; }})")
    page.wait("document.querySelector('.footnotes') !== null")
    assert page.text(".footnotes").startswith("Message content was not captured. The overview shows how to capture it")
    page.go("#/agents")
    rows = [each for each in page.texts("table.rates tbody tr") if each.startswith("mute")]
    assert rows
    assert all("not scored" in row and "0 %" not in row for row in rows)


def test_failures_by_agent_and_metric_link_to_their_traces(page: Page, collector: CollectorProcess) -> None:
    page.visit(f"{collector.http}/")
    assert "No model is configured (judge.model): task success is not judged." in page.text()
    page.go("#/agents")
    page.run("[...document.querySelectorAll('table.rates a')].find((link) => link.href.includes('tool_loop')).click()")
    page.wait("document.querySelector('h1').innerText === 'Traces'")
    assert page.count(".row.trace.bad") == page.count(".row.trace") == 1


def test_failures_are_grouped_by_cause_and_link_to_examples(page: Page, collector: CollectorProcess) -> None:
    groups = httpx.get(f"{collector.http}/api/v1/incidents", timeout=30).json()["incidents"]
    page.visit(f"{collector.http}/")
    assert page.count(".incident") > 1
    loop = next(each for each in groups if each["metric"] == "trace.tool_loop")
    page.go("#/failures")
    [row] = [each for each in page.texts(".incident") if each.startswith("medium\nLoop")]
    assert f"\n{loop['runs']}\nrun" in row
    assert "min ago" in row
    page.visit(f"{collector.http}/#/failures?group={loop['ids'][0]}")
    assert page.text("h1") == "Loop + Repeated tool call"
    assert page.count(".over-time") == 1
    assert page.texts(".part .name")[0] == loop["agents"][0]
    assert page.texts(".example .q")[0]
    assert page.run("document.querySelector('.about .beyond a').href").startswith("http://localhost:16686/trace/")
    page.click(".example")
    page.wait("document.querySelector('.fall') !== null")
    assert loop["trace_id"] in page.run("location.hash")
    assert page.count(".line.pointed") > 0
    page.visit(f"{collector.http}/#/failures?group=none")
    assert "This incident cannot be shown" in page.text()
    assert all("404" in each for each in page.complaints)
    page.complaints.clear()


def test_a_muted_incident_is_not_listed_as_open_until_it_is_reset(page: Page, collector: CollectorProcess) -> None:
    page.visit(f"{collector.http}/#/failures")
    before = page.count(".incident")
    page.click(".incident")
    page.wait("document.querySelector('.triage') !== null")
    address = page.run("location.hash")
    page.run("document.getElementById('note').value = 'OPS-12, until Monday'")
    page.run("document.getElementById('by').value = 'kim'")
    page.run("[...document.querySelectorAll('.triage .pill')].find((each) => each.innerText === 'Muted').click()")
    page.wait("document.querySelector('.triage [aria-pressed=true]').innerText === 'Muted'")
    assert page.text(".triage [role=status]") == "by kim, now"
    page.go("#/failures")
    assert page.count(".incident") == before - 1
    assert page.texts(".states .pill")[0] == f"Open {before - 1}"
    page.go("#/failures?state=muted")
    [row] = page.texts(".incident")
    assert "OPS-12, until Monday" in row
    page.go("#/")
    assert "1 muted" in page.text()
    page.go(address)
    assert page.run("document.getElementById('note').value") == "OPS-12, until Monday"
    page.run("[...document.querySelectorAll('.triage .pill')].find((each) => each.innerText === 'New').click()")
    page.wait("document.querySelector('.triage [aria-pressed=true]').innerText === 'New'")
    page.go("#/failures")
    assert page.count(".incident") == before
    page.go(address)
    page.run("document.querySelector('.about details summary').click()")
    assert "Muted by kim: OPS-12, until Monday" in page.text(".about details")


@pytest.mark.parametrize("address", ["#/sessions/table-for-four", "#/nothing", "#/constructor"])
def test_an_unknown_address_shows_a_message(page: Page, collector: CollectorProcess, address: str) -> None:
    page.visit(f"{collector.http}/{address}")
    assert page.text() == "There is no page at this address. Overview"


def test_two_traces_selected_in_a_list_are_compared_step_by_step(page: Page, collector: CollectorProcess) -> None:
    page.visit(f"{collector.http}/#/traces?agent=table_booking")
    assert page.count(".ticks") == 0
    boxes = "[...document.querySelectorAll('.tickable > input')]"
    page.run(f"{boxes}.slice(0, 2).forEach((each) => each.click())")
    page.click(".ticks a")
    page.wait("document.querySelector('.pairs') !== null")
    assert page.texts(".side h2 a")[0] in page.text(".pair")
    assert page.count(".ticks") == 0, "the selection must be empty after the comparison opens"
    kinds = page.run("[...document.querySelectorAll('.pair')].map((each) => each.querySelectorAll('a.half').length)")
    assert set(kinds) <= {1, 2}
    assert page.count(".pair.first") == 1
    assert page.count(".pair mark.diff") > 0
    one = page.run("location.hash").split("a=")[1].split("&")[0]
    page.visit(f"{collector.http}/#/compare?a={one}&b={one}")
    assert page.text("h1") == "One question, two traces"
    assert page.text(".top [role=status]").startswith("all ")
    assert page.count(".pair:not(.alike)") == 0


def test_traces_sessions_and_spans_have_permanent_addresses(page: Page, collector: CollectorProcess) -> None:
    result = next(each for each in collector.results() if each["metric"] == "grounding" and each["span_ids"])
    page.visit(f"{collector.http}/#/trace/{result['trace_id'].upper()}?span={result['span_ids'][0]}")
    assert page.count(".line.pointed") == page.count(".panel") == 1
    page.visit(f"{collector.http}/#/session/table-for-four")
    assert page.count(".row.trace") == 1
    page.visit(f"{collector.http}/#/trace/{'0' * 32}")
    assert "no scored agent trace has this ID" in page.text(".notice")
    assert all("404" in each for each in page.complaints)
    page.complaints.clear()


def test_hostile_content_is_shown_and_never_executed(page: Page, collector: CollectorProcess) -> None:
    page.visit(f"{collector.http}/")
    for address in ("#/", "#/traces"):
        page.go(address)
        assert "<img src=x onerror=" in page.text()
        assert "\u202e" not in page.text()
        assert page.count("main img, main svg:not(.graph svg), main script") == 0
    page.go("#/")
    page.run("[...document.querySelectorAll('.row.unit')].find((row) => row.innerText.includes('onerror')).click()")
    page.wait("document.querySelector('.crumbs') !== null")
    assert page.text("h1").startswith("</script>")
    page.click(".row.trace")
    page.wait("document.querySelector('.fall') !== null")
    page.run("document.querySelectorAll('.line[data-row]').forEach((_, at) => "
             "document.querySelectorAll('.line[data-row]')[at].click())")  # fmt: skip
    page.run("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    assert "onerror" in page.text(".panel")
    assert page.run("window.hit") is None
    assert page.count("main img, main svg:not(.graph svg), main script") == 0


def test_security_headers_block_external_requests_and_framing(page: Page, collector: CollectorProcess) -> None:
    page.visit(f"{collector.http}/")
    assert page.run("fetch('http://127.0.0.1:9/x').then(() => 'sent', () => 'refused')") == "refused"
    assert any("Content Security Policy" in each for each in page.complaints)
    page.complaints.clear()
    page.requests[:] = [each for each in page.requests if ":9/" not in each]
    headers = httpx.get(f"{collector.http}/", timeout=60).headers
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-frame-options"] == "DENY"
    assert headers["referrer-policy"] == "no-referrer"
    assert httpx.get(f"{collector.http}/", headers={"host": "evil.example"}, timeout=60).status_code == 421


def test_pages_fit_a_phone_and_have_a_dark_mode(page: Page, collector: CollectorProcess) -> None:
    trace = next(each["trace_id"] for each in collector.results() if each["session_id"] == "table-for-four")
    page.resize(390, 800)
    page.dark()
    try:
        pages = ("", "failures", "sessions", "traces", "agents", "runs", "trust")
        for address in (*(f"#/{each}" for each in pages), "#/session/table-for-four", f"#/trace/{trace}"):
            page.visit(f"{collector.http}/{address}")
            assert page.run("document.documentElement.scrollWidth") <= 390, address
        assert page.run("getComputedStyle(document.body).backgroundColor") == "rgb(17, 19, 23)"
    finally:
        page.dark(False)
        page.resize(1280, 900)


@pytest.mark.slow
def test_new_sessions_appear_automatically_but_wait_while_a_row_has_focus(
    page: Page, collector: CollectorProcess
) -> None:
    page.visit(f"{collector.http}/#/sessions?each=1")
    before = page.count(".row.unit")
    post(collector.http, booking("another-table"))
    page.wait("document.body.innerText.includes('another-table')")
    assert page.count(".row.unit") == before + 1
    page.run("document.querySelector('.row.unit').focus()")
    post(collector.http, booking("a-third-table"))
    page.wait("document.querySelector('.fresh') !== null")
    assert "a-third-table" not in page.text()
    page.click(".fresh")
    page.wait("document.body.innerText.includes('a-third-table')")
    assert page.count(".fresh") == 0


def test_a_period_selected_in_the_chart_is_kept_in_the_address(page: Page, collector: CollectorProcess) -> None:
    page.visit(f"{collector.http}/#/?agent=table_booking")
    page.drag(".over-time .u-over", 0.5, 0.95)
    page.wait("location.hash.includes('since=')")
    page.wait("document.querySelector('.pill').innerText.includes('✕')")
    assert "agent=table_booking" in page.run("location.hash")
    page.run("[...document.querySelectorAll('#top nav a')].find((each) => each.innerText === 'Traces').click()")
    page.wait("document.querySelector('h1').innerText === 'Traces'")


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize(
    ("span", "label"), [("2016-01-01 2027-01-01", r"20\d\d-\d\d-\d\d"), ("2026-01-01 2026-07-01", r"\d\d-\d\d 00:00")]
)
def test_chart_labels_over_months_and_years_do_not_overlap(
    page: Page, collector: CollectorProcess, span: str, label: str, width: int
) -> None:
    since, until = (f"{datetime.fromisoformat(f'{day}T00:00Z').timestamp() * 1000:.0f}" for day in span.split())
    page.resize(width + 1, 900)
    page.visit(f"{collector.http}/#/?since={since}&until={until}")
    page.run(_NOTE_LABELS)
    page.resize(width, 900)  # draws the chart again
    page.wait("Object.keys(window.labels).length > 1")
    labels = sorted(page.run("Object.values(window.labels)"))
    wide = page.run("document.querySelector('.over-time canvas').width")
    page.resize(1280, 900)
    assert all(re.fullmatch(label, text) for _, _, text in labels), labels
    assert all(left >= 0 and right <= wide for left, right, _ in labels), labels
    assert all(right + 4 < left for (_, right, _), (left, _, _) in pairwise(labels)), labels


def test_three_false_claims_are_listed_first_despite_sixty_crashes(page: Page, tmp_path: Path) -> None:
    with CollectorProcess(tmp_path / "collector") as running:
        running.start()
        page.visit(f"{running.http}/")
        assert f"OTEL_EXPORTER_OTLP_ENDPOINT={running.http}" in page.text(".snippet")
        page.run(
            "(() => { const field = document.querySelector('main select'); field.value = 'LangGraph'; "
            "field.dispatchEvent(new Event('change')); })()"
        )
        assert f"PANDAEVAL_ENDPOINT={running.grpc}" in page.text(".snippet")
        post(running.http, mix())
        running.until(lambda: len(_sessions(running)) >= 64, "done with all")
        running.until(running.at_rest, "at rest")
        page.visit(f"{running.http}/")
        assert page.text("h1") == "Not judged: 64 of 64 runs have findings"
        first = page.texts(".incident")[:5]
        lies = [row for row in first if row.startswith("critical\nClaimed success after a failed call")]
        assert all(any(tool in row for row in lies) for tool in ("send_reminder", "cancel_order", "update_address"))
        assert any("\n60\nruns" in row for row in first)
        assert [row for row in page.texts(".row.unit") if "Crash" in row]
    page.requests.clear()  # of the other collector


def test_the_page_recovers_when_the_collector_restarts(page: Page, tmp_path: Path) -> None:
    with CollectorProcess(tmp_path / "collector") as running:
        running.start()
        post(running.http, booking())
        running.until(lambda: "table-for-four" in _sessions(running), "done with it")
        page.visit(f"{running.http}/")
        running.stop()
        page.run("location.hash = '#/sessions'")
        page.wait("document.querySelector('main').innerText.startsWith('This page cannot be shown')")
        running.start()
        page.wait("document.querySelectorAll('.row.unit').length === 1")
    page.requests.clear()
    page.complaints.clear()  # of the time without a collector


def _sessions(running: CollectorProcess) -> set[str | None]:
    return {result["session_id"] for result in running.results()}


def test_a_reviewer_can_confirm_a_failure_and_undo_it(page: Page, collector: CollectorProcess) -> None:
    result = next(each for each in collector.results() if each["metric"] == "grounding" and each["success"] is False)
    page.visit(f"{collector.http}/#/trace/{result['trace_id']}")
    page.run("document.querySelector('.finding .judgement button').click()")
    page.wait("document.querySelector('.judgement').innerText.startsWith('saved:')")
    kept = httpx.get(f"{collector.http}/api/v1/annotations", timeout=60).json()["items"]
    assert [(each["trace_id"], each["metric"], each["passed"]) for each in kept] == [
        (result["trace_id"], "trace.grounding", False)
    ]
    after = httpx.get(f"{collector.http}/api/v1/traces/{result['trace_id']}", timeout=60).json()
    assert result["id"] in {each["id"] for each in after["results"]}, "a label must not change the score"
    page.visit(f"{collector.http}/#/trace/{result['trace_id']}")
    page.wait(
        "document.querySelector('.finding .judgement').innerText.startsWith('saved: you agree with this failure')"
    )
    page.click(".finding .judgement button")
    page.wait("document.querySelector('.finding .judgement').innerText.includes('Dismiss')")
    assert httpx.get(f"{collector.http}/api/v1/annotations", timeout=60).json()["items"] == []


def test_a_session_is_rescored_only_after_its_cost_was_shown(page: Page, collector: CollectorProcess) -> None:
    page.visit(f"{collector.http}/#/session/table-for-four")
    page.run("document.querySelector('.again').open = true")
    page.run(
        "[...document.querySelectorAll('.again option')].forEach("
        "(each) => { each.selected = each.value === 'trace.grounding'; })"
    )
    page.click(".again button.more")
    page.wait("/1 trace, 0 judge calls/.test(document.querySelector('.again').innerText)")
    assert httpx.get(f"{collector.http}/api/v1/runs", timeout=60).json()["items"] == []
    page.run("[...document.querySelectorAll('.again button.more')].at(-1).click()")
    page.wait("/done, 1 of 1 trace/.test(document.querySelector('.again').innerText)")
    [run] = httpx.get(f"{collector.http}/api/v1/runs", timeout=60).json()["items"]
    assert (run["metrics"], run["filters"]["session"]) == (["trace.grounding"], "table-for-four")


def test_a_returned_incident_shows_who_resolved_it_and_has_no_active_state(
    page: Page, collector: CollectorProcess
) -> None:
    [incident] = [
        each
        for each in httpx.get(f"{collector.http}/api/v1/incidents", timeout=60.0).json()["incidents"]
        if "made_up_value" in each["label"]
    ]
    change = {"ids": incident["ids"], "state": "resolved", "by": "kim", "note": "fixed in 1.2"}
    assert httpx.post(f"{collector.http}/api/v1/incidents/state", json=change, timeout=60.0).is_success
    again = booking("back-again")
    for span in again.resource_spans[0].scope_spans[0].spans:  # after the incident was resolved
        span.start_time_unix_nano += 5_000_000_000
        span.end_time_unix_nano += 5_000_000_000
    post(collector.http, again)
    collector.until(lambda: "back-again" in _sessions(collector), "failed again")
    collector.until(collector.at_rest, "at rest")
    page.visit(f"{collector.http}/#/failures?group={incident['id']}")
    status = page.text(".triage [role=status]")
    assert status.startswith("resolved by kim at ")
    assert "; came back at " in status
    assert page.count(".triage [aria-pressed=true]") == 0, "no state may be active"
    assert page.run("document.getElementById('note').value") == ""
    page.run("document.querySelector('.about details summary').click()")
    assert "Resolved by kim: fixed in 1.2" in page.text(".about details")
