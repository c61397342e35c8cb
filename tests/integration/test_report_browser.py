"""The report in Chromium."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pandaeval_collector.base.score import Assumed, Score, Unscored, Why
from pandaeval_collector.cli import app
from pandaeval_otel.model import Captured, Kind, Trace, Turn
from support.builders import Spans, says, user
from support.chromium import Page, chromium
from support.judged import call, trace
from support.reports import report, result
from support.trials import run, write

PROGRAM = chromium()
pytestmark = pytest.mark.skipif(PROGRAM is None, reason="no Chromium here (Debian: apt-get install chromium)")


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    assert PROGRAM is not None
    with Page(PROGRAM, tmp_path_factory.mktemp("chromium")) as opened:
        yield opened


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import lzma
    from importlib.resources import files

    folder = tmp_path_factory.mktemp("demo")
    packed = files("pandaeval_lab.cli._recordings").joinpath("sessions.otlp.jsonl.xz").read_bytes()
    (folder / "demo.jsonl").write_bytes(lzma.decompress(packed))
    made = folder / "report.html"
    outcome = CliRunner().invoke(
        app, ["evaluate", str(folder / "demo.jsonl"), "--format", "html", "--output", str(made)]
    )
    assert outcome.exit_code == 0, outcome.output
    return made


@pytest.fixture(autouse=True)
def _calm(page: Page) -> Iterator[None]:
    """Fail for console errors and foreign requests."""
    page.requests.clear()
    page.complaints.clear()
    yield
    assert page.complaints == []
    assert {address.rpartition("/")[2] for address in page.requests} == {"report.html"}
    assert all(address.startswith("file://") for address in page.requests)


def test_the_first_page_shows_failures_evidence_and_missing_data(page: Page, demo: Path) -> None:
    page.open(demo)
    assert page.text("h1") == "Not judged: 6 of 10 sessions have findings"
    failed, grounds, missing = page.texts(".cards .card")
    assert "Tool loop\n1 of 26" in failed
    assert "of applicable results have a score" in grounds
    assert "by code: deterministic" in grounds
    assert "by a judge" not in grounds  # no judge ran, though code found a failure that a judged metric names
    assert "17 judged metrics not run" in grounds
    assert "The evidence is not sufficient" in missing
    assert page.text(".unasked").startswith("Task success was not judged: no model is configured")
    assert page.run("document.documentElement.scrollWidth") <= 1280
    assert page.count(".row.unit") == 10
    assert page.count(".row.unit.bad") == 6
    assert page.count("figure canvas") == 7
    place = "turn 2 of trace 894037827519"
    assert place in page.texts(".why a")
    page.run(f"[...document.querySelectorAll('.why a')].find((link) => link.innerText === '{place}').click()")
    page.wait("document.querySelector('.fall') !== null")


@pytest.mark.parametrize("address", ["#/sessions", "#/s/9999", "#/traces/1"])
def test_an_unknown_address_shows_a_message(page: Page, demo: Path, address: str) -> None:
    page.open(demo, address)
    assert page.text() == "There is no page at this address. Overview"


def test_a_score_without_a_judge_is_shown_as_text_and_not_as_a_pass(page: Page, tmp_path: Path) -> None:
    made = replace(trace(), session_id="s1")
    score = Score(1.0, "because", {"basis": "inline"}, label="no_problem_found", coverage=0.5)
    results = [result(made, "response", 1.0), result("s1", "agent_reliability", score, level="session")]
    page.open(report([made], results).save(tmp_path))
    assert page.text("h1") == "Not judged: no findings in 1 session"
    assert "Task success was not judged" in page.text(".unasked")
    assert page.text(".row.unit .verdict").endswith("no problem found")
    assert "no problem found by rule checks; task success: not judged" in page.text(".row.unit")
    assert page.count(".row.unit .pass") == page.count(".row.unit.good") == 0
    page.click(".row.unit")
    page.wait("document.querySelector('.lead .id')?.innerText === 's1'")
    assert page.count(".result.said") == 1
    assert "1.00" not in page.text(".result.said .chip")


def test_the_headline_names_the_check_if_only_the_end_of_a_run_was_checked(page: Page, tmp_path: Path) -> None:
    page.open(report([trace()], [result(trace(), "response", 1.0)]).save(tmp_path))
    assert page.text("h1") == "Not judged: only the ends of the runs were checked"
    assert "hardly checked" in page.text(".row.unit")


def test_an_error_text_as_answer_is_not_named_a_crash(page: Page, tmp_path: Path) -> None:
    page.open(report([trace()], [result(trace(), "response", Score(0.0, label="error"))]).save(tmp_path))
    assert page.text(".row.unit .verdict .name") == "Crash or error text"


def test_scores_of_an_open_session_are_marked_so_far(page: Page, tmp_path: Path) -> None:
    made = replace(trace(), session_id="s1")
    whole = replace(result("s1", "agent_reliability", 0.2, level="session"), final=False)
    page.open(report([made], [result(made, "response", 1.0), whole]).save(tmp_path))
    assert page.text(".row.unit .verdict").endswith("0.20 so far")
    assert "so far: as composed" in page.text(".row.unit .said")
    page.click(".row.unit")
    page.wait("document.querySelector('.lead .id')?.innerText === 's1'")
    assert page.text(".result .chip").endswith("so far")
    page.click(".result .chip-button")
    assert page.texts(".opened .tag") == ["so far"]
    assert "the session is open" in page.text(".opened .foot")


def test_a_session_leads_to_its_loop_and_the_repeated_calls(page: Page, demo: Path) -> None:
    page.open(demo)
    page.run(
        "[...document.querySelectorAll('.row.unit')].find((row) => row.innerText.includes('stuck-search')).click()"
    )
    page.wait("document.querySelector('.lead .id')?.innerText === 'stuck-search'")
    page.run("[...document.querySelectorAll('.chip-button')].find((each) => each.innerText.includes('reliab')).click()")
    assert "Did the agent ever fail badly" in page.text(".opened")
    assert "called search_catalogue ×6" in page.texts(".talk .called")
    page.click(".row.trace.bad")
    page.wait("document.querySelector('.fall') !== null")
    assert "search_catalogue was called 6 times" in page.text()
    assert "↻ 2/6" in page.text(".line.pointed"), "the first wrong step must be in the loop"
    assert "↻ 6/6" in page.text(".fall")
    assert page.count(".line.in-loop") == 6
    page.click(".line.in-loop")
    assert page.count(".panel") == 1
    assert "ARGUMENTS" in page.text(".panel").upper()


def test_a_finding_highlights_its_spans(page: Page, demo: Path) -> None:
    page.open(demo, "#/traces?metric=trace.tool_loop&state=fail")
    page.click(".row.trace")
    page.wait("document.querySelector('.fall') !== null")
    page.click(".finding .show")
    assert page.count(".line.pointed") == 6, "all equal calls must be highlighted"


def test_crashed_runs_can_be_filtered_and_show_the_failed_step(page: Page, demo: Path) -> None:
    page.open(demo, "#/traces?state=error")
    assert page.count(".row.trace") == 2
    page.click(".row.trace")
    page.wait("document.querySelector('.fall') !== null")
    assert "Crash" in page.text("h1")
    assert page.count(".tag.fail") > 0


def test_the_report_can_be_used_with_the_keyboard(page: Page, demo: Path) -> None:
    page.open(demo)
    page.press("/")
    page.wait("document.activeElement.id === 'search'")
    page.press(*"lighthouses")
    page.wait("document.querySelectorAll('.row.trace').length === 1")
    page.run("document.querySelector('.row.trace').focus()")
    page.press("Enter")
    page.wait("document.querySelector('.fall') !== null")
    page.run("document.querySelector('.line').focus()")
    page.press("Home", "ArrowDown", "j", "k")
    assert page.run("document.activeElement === document.querySelectorAll('.line')[1]")
    page.press("Enter")
    assert page.run("document.activeElement.className").startswith("panel")
    page.press("?")
    assert "next and previous step" in page.text("dialog")
    page.press("Escape")
    page.press("p")
    page.wait("document.querySelector('.crumbs').innerText.includes('trace 1 of')")


MOCKED = {"tool": "look_up", "arguments": {"id": 1}, "kind": "result", "result": "found"}


@pytest.fixture(scope="module")
def trials(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return results and traces of two repeated cases."""
    folder = tmp_path_factory.mktemp("trials")
    tools = "[{tool_name: look_up}]"
    (folder / "suite.yaml").write_text(
        f"name: desk\ncases:\n- {{id: look-it-up, expected_tools: {tools}}}\n- {{id: refuse, expected_tools: []}}\n"
    )
    runs = [
        run(
            number,
            case=("look-it-up", "refuse")[number % 2],
            trial=str(number),
            calls=[("look_up", {"id": 1})],
            pandaeval__mock__calls=[json.dumps(MOCKED)],
        )
        for number in range(1, 7)
    ]
    return write(folder / "traces.jsonl", runs)


def evaluated(trials: Path, *options: str) -> None:
    cases = ("--cases", str(trials.with_name("suite.yaml")))
    outcome = CliRunner().invoke(app, ["evaluate", str(trials), *cases, *options])
    assert outcome.exit_code == 0, outcome.output


def is_whole(page: Page, selector: str) -> bool:
    """Return whether each cell is on one line."""
    lines = page.run(
        f"""[...document.querySelectorAll('{selector}')].map((cell) => {{
            const words = document.createRange();
            words.selectNodeContents(cell);
            return new Set([...words.getClientRects()].map((line) => line.top)).size; }})"""
    )
    return set(lines) == {1}


def test_cases_are_listed_in_a_table_without_broken_words(page: Page, trials: Path, tmp_path: Path) -> None:
    made = tmp_path / "report.html"
    evaluated(trials, "--format", "html", "--output", str(made))
    for width in (1200, 390):
        page.resize(width, 900)
        page.open(made)
        assert page.texts("h2 + .cases tbody td:first-child") == ["refuse", "look-it-up"]
        assert is_whole(page, ".cases th")
        assert page.run("document.documentElement.scrollWidth") <= width
    page.resize(1280, 900)


def test_pages_fit_the_width_of_a_phone(page: Page, demo: Path) -> None:
    page.resize(390, 800)
    try:
        for address in ("#/", "#/traces", "#/s/4", "#/t/16"):
            page.open(demo, address)
            assert page.run("document.documentElement.scrollWidth") <= 390, address
    finally:
        page.resize(1280, 900)


def test_dark_mode_and_printing_work(page: Page, demo: Path, tmp_path: Path) -> None:
    page.dark()
    try:
        page.open(demo)
        assert page.run("getComputedStyle(document.body).backgroundColor") == "rgb(17, 19, 23)"
        page.print(tmp_path / "report.pdf")
        assert (tmp_path / "report.pdf").read_bytes().startswith(b"%PDF")
        assert page.run("document.documentElement.dataset.print") is None
    finally:
        page.dark(False)
    page.click("#top button")
    assert page.run("document.documentElement.dataset.theme") == "dark"


HOSTILE = (
    "</script><script>window.hit = 1</script><img src=x onerror='window.hit = 2'><svg onload=hit>{{7*7}}${7*7}\u202e"
)


def test_hostile_content_is_shown_and_never_executed(page: Page, tmp_path: Path) -> None:
    spans = Spans()
    root = spans.agent(None, name=HOSTILE, error=HOSTILE)
    spans.llm(root, [user(HOSTILE)], says(HOSTILE), response_model=HOSTILE)
    spans.tool(root, name=HOSTILE, arguments={HOSTILE: HOSTILE}, result=HOSTILE, error=HOSTILE)
    spans.add(Kind.RETRIEVAL, root, name=HOSTILE, documents=({"text": HOSTILE},), result=Captured(HOSTILE))
    made = Trace(
        root.trace_id,
        tuple(spans()),
        root.span_id,
        agent=HOSTILE,
        service=HOSTILE,
        session_id=HOSTILE,
        error=HOSTILE,
        input=HOSTILE,
        output=HOSTILE,
        turns=(Turn(HOSTILE, HOSTILE),),
        notes=(HOSTILE,),
        models=(HOSTILE,),
    )
    results = [
        result(made, "coherence", Score(0.1, HOSTILE, {HOSTILE: [HOSTILE, {HOSTILE: 1}]}, label=HOSTILE)),
        result(made, "tool_loop", Unscored(Why.METRIC_ERROR, HOSTILE)),
        result(HOSTILE, "agent_reliability", Score(0.1, HOSTILE, {"band": HOSTILE}), level="session"),
    ]
    file = report([made], results).save(tmp_path)
    for address in ("#/", "#/traces", "#/s/0", "#/t/0"):
        page.open(file, address)
        assert page.run("window.hit") is None
        assert page.count("main img, main svg:not(.graph svg), main script") == 0
        assert "<img src=x onerror=" in page.text()
        assert "\u202e" not in page.text()
    page.run("document.querySelectorAll('.line[data-row]').forEach((_, at) => "
             "document.querySelectorAll('.line[data-row]')[at].click())")  # fmt: skip
    assert "onerror" in page.text(".panel")
    page.run("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    assert page.run("window.hit") is None
    assert r"\u202e" in page.text(".panel")


def test_content_security_policy_blocks_external_requests(page: Page, demo: Path) -> None:
    page.open(demo)
    blocked = page.run(
        "fetch('http://127.0.0.1:9/x').then(() => 'sent', () => 'refused')",
    )
    assert blocked == "refused"
    assert any("Content Security Policy" in each for each in page.complaints)
    page.complaints.clear()
    page.requests[:] = [each for each in page.requests if each.startswith("file://")]


def test_a_megabyte_of_text_is_cut_with_a_note(page: Page, tmp_path: Path) -> None:
    made = trace("q " * 500_000, "ملخص " * 200_000)
    file = report([made], [result(made)]).save(tmp_path)
    assert file.stat().st_size < 1_000_000
    page.open(file, "#/t/0")
    assert "of 1,000,000 characters left out" in page.text()


def test_judged_arguments_are_marked_on_their_calls(page: Page, tmp_path: Path) -> None:
    spans = Spans()
    root = spans.agent()
    tools = [spans.tool(root, arguments={"q": number}, result="ok") for number in range(2)]
    base = trace(calls=[call(number, span_id=tool.span_id) for number, tool in enumerate(tools)])
    made = replace(base, spans=tuple(spans()), root_span_id=root.span_id)
    verdicts = [{"call": 1, "verdict": "yes", "reason": None}, {"call": 2, "verdict": "no", "reason": "wrong city"}]
    score = Score(0.5, "1 of 2 calls", {"verdicts": verdicts}, span_ids=(tools[1].span_id,))
    file = report([made], [result(made, "argument_correctness", score, kind="llm")]).save(tmp_path)
    page.open(file, "#/t/0")
    assert "✗ arguments" not in page.text(".line[data-row='1']")
    assert "✗ arguments" in page.text(".line[data-row='2']")
    page.click(".line[data-row='2']")
    assert "wrong city" in page.text(".panel")
    page.click(".chip-button")
    assert "by a judge (judge-1)" in page.text(".opened .result")


def test_a_verdict_is_shown_first_and_links_to_its_tool_calls(page: Page, tmp_path: Path) -> None:
    spans = Spans()
    root = spans.agent()
    tools = [spans.tool(root, arguments={"q": number}, result="ok") for number in range(2)]
    base = trace(calls=[call(number, span_id=tool.span_id) for number, tool in enumerate(tools)])
    made = replace(base, spans=tuple(spans()), root_span_id=root.span_id)
    things = [
        {"thing": "cancel order 12", "became": "rightly declined", "shown_by": "call 1"},
        {"thing": "send it faster", "became": "wrong", "shown_by": "call 2"},
    ]
    blame = {"step": "call 2", "trace_id": made.trace_id, "span_id": tools[1].span_id, "tool": "t"}
    parts = {"things": things, "broken_rules": [], "misstatements": [], "first_wrong_step": "call 2", "sure": 4.0}
    score = Score(0.04, "it went by mail", {**parts, "blame": blame}, label="wrong_thing", span_ids=(tools[1].span_id,))
    results = [result(made, "coherence", 0.1), result(made, "correctness", score, kind="llm")]
    page.open(report([made], results).save(tmp_path), "#/t/0")
    assert page.text(".score-strip > .result").startswith("✗\nWrong thing\n96 % sure")
    assert page.run("document.querySelector('[aria-selected=true]').dataset.row") == "2", "the first wrong step"
    assert page.texts(".things li") == [
        "✓\ncancel order 12\nrightly declined\ncall 1",
        "✗\nsend it faster\nwrong\ncall 2",
    ]
    page.click(".things .link")
    assert page.run("document.querySelector('[aria-selected=true]').dataset.row") == "1"


def test_many_passed_results_are_summarized_and_assumed_results_counted_separately(page: Page, tmp_path: Path) -> None:
    made = trace()
    passed = [result(made, name) for name in ("coherence", "confidence", "tool_correctness", "step_efficiency")]
    others = [result(made, "plan_quality", Assumed("no plan")), result(made, "task_completion", 0.1)]
    page.open(report([made], [*passed, *others]).save(tmp_path), "#/traces")
    assert page.texts(".row .chip") == ["✗\nTask completion\n0.10", "✓\n4 passed", "≈\n1 assumed"]


def test_a_report_with_only_unscored_results_explains_how_to_capture_content(page: Page, tmp_path: Path) -> None:
    made = replace(trace(None, None), service="shop")
    file = report([made], [result(made, finding=Unscored(Why.NO_CONTENT, "nothing was captured"))]).save(tmp_path)
    page.open(file)
    assert page.text("h1") == "Nothing could be scored"
    assert "To capture content" in page.text(".cure")
    page.open(report([], []).save(tmp_path))
    assert page.text("h1") == "No agent traces in this input"


@pytest.mark.parametrize("count", [1_000, pytest.param(5_000, marks=pytest.mark.slow)])
def test_thousands_of_traces_can_be_listed_filtered_and_opened(page: Page, tmp_path: Path, count: int) -> None:
    spans = Spans()
    root = spans.agent()
    for number in range(11):
        spans.tool(root, arguments={"q": number}, result={"found": number})
    base = replace(trace(), spans=tuple(spans()), root_span_id=root.span_id)
    traces = [replace(base, trace_id=f"{at:032x}", session_id=f"session {at // 10}") for at in range(count)]
    results = [result(each, finding=at % 100 / 100) for at, each in enumerate(traces)]
    file = report(traces, results).save(tmp_path)
    assert file.stat().st_size < count * 5_000
    page.open(file)
    assert page.text("h1") == f"Not judged: {count // 20} of {count // 10} sessions have findings"
    assert page.count(".row") == 20
    page.click(".more")
    assert page.count(".row") == 40
    page.go("#/traces")
    assert f"{count:,} traces of {count:,}" in page.text()
    assert page.count(".row") == 50
    page.go("#/traces?metric=trace.coherence&from=0.2&to=0.25")
    assert f"{count // 20} traces of {count:,}" in page.text()
    page.go(f"#/t/{count - 1}")
    assert page.count(".line.call") == 11


def test_unclear_and_disputed_verdicts_are_counted_separately_and_can_be_filtered(page: Page, tmp_path: Path) -> None:
    traces = [replace(trace(), trace_id=f"{number:032x}", session_id=None) for number in range(5)]
    verdicts = [
        Score(0.9),
        Score(0.1),
        Score(0.6, label="unclear"),
        Score(0.4, label="unclear"),
        Score(0.9, label="disputed"),
    ]
    results = [result(made, "correctness", verdict, kind="llm") for made, verdict in zip(traces, verdicts, strict=True)]
    report(traces, results).save(tmp_path)
    page.open(tmp_path / "report.html")
    decided = "50 % of 2 decided, 2 unclear, 1 disputed"
    assert page.text("h1") == "1 run was handled correctly: 50 % of 2 decided (9% to 91%), 2 unclear, 1 disputed"
    assert "Correctness\n1 of 2" in page.text(".cards .card")
    assert decided in page.text("figure")
    for label, count in (("unclear", 2), ("disputed", 1)):
        page.run(f"location.hash = {json.dumps(f'#/traces?state={label}')}")
        page.wait(f"document.querySelectorAll('.row.trace').length === {count}")
        assert page.count(f".row.trace .chip.{label}") == count
        assert page.count(".row.trace.bad, .row.trace.good") == 0


def test_traces_of_a_session_with_an_unclear_verdict_are_neither_green_nor_hidden(page: Page, tmp_path: Path) -> None:
    traces = [replace(trace(), trace_id=f"{number:032x}", session_id=f"s{number // 2}") for number in range(6)]
    results = [result(made, "coherence", 1.0) for made in traces]
    verdicts = {"s0": Score(0.6, label="unclear"), "s1": Score(0.1)}
    results += [result(id_, "correctness", each, level="session", kind="llm") for id_, each in verdicts.items()]
    results += [result(traces[5], "correctness", Score(0.4, label="unclear"), kind="llm")]
    results += [result(traces[4], "grounding", Score(0.7, label="suspect"))]
    page.open(report(traces, results).save(tmp_path))
    assert page.count(".row.unit") == 3
    assert page.count(".row.unit.quiet") == 2
    assert page.count(".square.none") == page.count(".square") == 6
    for state, count in (("unclear", 3), ("fail", 2), ("disputed", 0), ("suspect", 1)):
        page.go(f"#/traces?state={state}")
        assert page.count(".row.trace") == page.count(f".row.trace .chip.{state}") == count
    page.go("#/traces?metric=session.correctness")
    assert page.count(".row.trace") == 4


def test_a_session_is_shown_as_a_conversation_with_findings_at_their_turns(page: Page, demo: Path) -> None:
    page.open(demo)
    page.run("[...document.querySelectorAll('.row.unit')].find((row) => row.innerText.includes('same-answer')).click()")
    page.wait("document.querySelector('.lead .id')?.innerText === 'same-answer-again'")
    texts = page.texts(".talk .text")
    assert texts[::2] == [
        "What is the status of order A-1042?",
        "Good. How do I send the kettle back?",
        "No, I mean: what is your return address?",
        "Can I talk to a person?",
    ]
    assert len(set(texts[1::2])) == 1
    first, second, *others = page.texts(".talk")
    assert "✗" not in first
    assert "the answer repeats the answer of trace 1 of this session" in second
    assert all(other.endswith("as in trace 2") for other in others), "equal reasons must be shown once"
    assert page.text(".score-strip .found").split() == ["✗", "Loop", "in", "3", "traces:", "2", "3", "4"]
    assert page.text(".score-strip").count("The status was looked up and answered.") <= 1


def test_the_graph_shows_agents_handoffs_tools_and_failures(page: Page, tmp_path: Path) -> None:
    spans = Spans()
    whole = spans.add(Kind.WORKFLOW)
    triage = spans.agent(whole, name="triage")
    spans.tool(triage, name="look_up", result=1)
    billing = spans.agent(whole, name="billing")
    for error in ("no such invoice", "no such invoice", None):
        broken = spans.tool(billing, name="refund", error=error)
    expert = spans.agent(billing, name="expert")
    spans.llm(expert, [user("pay?")], "Paid.")
    made = Trace(whole.trace_id, tuple(spans()), whole.span_id, turns=(Turn("pay?", "Paid.", whole.span_id),))
    page.open(report([made], [result(made, "response", 1.0)]).save(tmp_path), "#/t/0")
    assert page.count(".graph[open]") == 1, "the graph must be open for several agents"
    names = page.run(
        "[...document.querySelectorAll('.graph a.node')].map((each) => each.querySelector('title').textContent)"
    )
    assert [name.split(" · ")[0] for name in names] == [
        "agent triage: 1 run",
        "tool look_up: 1 call",
        "agent billing: 1 run",
        "tool refund: 3 calls",
        "agent expert: 1 run",
    ]
    edges = page.run("[...document.querySelectorAll('.graph .edge title')].map((each) => each.textContent)")
    assert edges == [
        "user → triage: 1 time",
        "triage → look_up: 1 time",
        "triage → billing: 1 time",
        "billing → refund: 3 times, 2 failed",
        "billing → expert: 1 time",
    ]
    [bad] = page.run("[...document.querySelectorAll('.graph .node.bad')].map((each) => each.textContent)")
    assert "✗ 2 failed" in bad, "failures must be readable without colour"
    page.run("document.querySelector('.graph .node.bad').focus()")
    page.press("Enter")
    page.wait("location.hash.includes('?span=')")
    first = next(span for span in made.spans if span.error)
    assert page.run("location.hash").endswith(f"?span={first.span_id}")
    assert first.span_id != broken.span_id
