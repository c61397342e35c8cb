"""Words and colours of the live page agree with the stored results."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from starlette.applications import Starlette

from pandaeval_collector.show.api.work import PageWork, Work
from pandaeval_collector.store import Store
from support.api import ReadInterfaces, serve_on_port
from support.chromium import Page, chromium
from support.versions import GROUPS, UNCLEAR, WRONG, fill

PROGRAM = chromium()
pytestmark = pytest.mark.skipif(PROGRAM is None, reason="no Chromium here (Debian: apt-get install chromium)")
INCIDENT = GROUPS["session.correctness"]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    made = fill(tmp_path_factory.mktemp("versions"))
    yield made
    made.close()


@pytest.fixture(scope="module")
def address(store: Store) -> Iterator[str]:
    lookouts = ReadInterfaces(store.path, Work(store, page=PageWork({})))
    with serve_on_port(Starlette(routes=lookouts.routes)) as url:
        yield url
    lookouts.close()


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    assert PROGRAM is not None
    with Page(PROGRAM, tmp_path_factory.mktemp("chromium")) as opened:
        yield opened


@pytest.fixture
def page(browser: Page, address: str) -> Iterator[Page]:
    browser.complaints.clear()
    browser.visit(f"{address}/#/agents")
    yield browser
    assert browser.complaints == []


def _answer(page: Page, path: str, change: str, status: int = 200) -> None:
    """Change the API's answers to a path: ``change`` is a JavaScript expression of ``body``."""
    page.run(f"""(() => {{
        const real = window.fetch;
        window.fetch = async (asked, ...more) => {{
            if (!asked.includes("/api/v1{path}")) return real(asked, ...more);
            const body = await (await real(asked)).json();
            return new Response(JSON.stringify({change}), {{ status: {status} }});
        }};
    }})()""")


def _replace(page: Page, path: str, answer: str) -> None:
    """Answer requests to a path without the collector. ``answer``: a JavaScript expression."""
    page.run(f"""(() => {{
        const real = window.fetch;
        window.fetch = async (asked, ...more) => (asked.includes("/api/v1{path}")
            ? new Response(JSON.stringify({answer})) : real(asked, ...more));
    }})()""")


def test_the_headline_names_the_check_if_only_ends_of_runs_were_checked(page: Page) -> None:
    only = "(each) => { each.results = each.results.filter(({ metric }) => metric === 'trace.response'); }"
    ok = "for (const each of body.index.traces) for (const result of each.results) result.success = true"
    _answer(page, "/page/index", f"(() => {{ [...body.index.traces, ...body.index.sessions].forEach({only}); {ok}; "
            "for (const each of body.index.sessions) each.failing = 0; return body; })()")  # fmt: skip
    page.go("#/?window=all&failed=0")
    assert page.text("h1") == "Not judged: only the ends of the runs were checked"


def test_an_incident_about_sessions_counts_sessions_without_a_share_of_runs(page: Page) -> None:
    wrong = sum(WRONG.values())
    page.go("#/failures?window=all")
    row = next(text for text in page.texts(".incident .times") if text.startswith(f"{wrong}\n"))
    assert row == f"{wrong}\nsessions"
    page.go(f"#/failures?window=all&group={INCIDENT}")
    assert f" {wrong} sessions of desk" in page.text(".about")
    assert "%" not in page.text(".about")
    assert "all sessions" in page.texts("h2 a")


def test_the_overview_counts_the_sessions_that_match_a_filter(page: Page) -> None:
    page.go("#/?window=all&failed=unclear")
    assert page.text("h1") == f"{UNCLEAR['1']} sessions match"
    page.go("#/traces?window=all&failed=unclear")
    assert f"{UNCLEAR['1']} of 150 traces match" in page.text(".top")


@pytest.mark.parametrize("status", [503, 404])
def test_an_incident_that_cannot_be_read_shows_the_message_of_the_collector(page: Page, status: int) -> None:
    _answer(page, "/incidents/", json.dumps({"detail": "the search took too long"}), status)
    page.go(f"#/failures?window=all&group={INCIDENT}")
    assert "the search took too long" in page.text()
    assert "not stored" not in page.text()


def test_evaluation_runs_list_metrics_by_name(page: Page) -> None:
    run: dict[str, Any] = {"id": "r1", "name": "", "state": "done", "metrics": ["trace.coherence"], "traces": 1}
    run |= {"done": 1, "failed": 0, "calls": 0, "cost_usd": 0, "created_at": 0, "error": None}
    _answer(page, "/runs", json.dumps({"items": [run], "next": None}))
    page.go("#/runs")
    assert "Coherence" in page.text("table.runs")
    assert "Off topic" not in page.text("table.runs")


def test_a_stopped_evaluation_run_shows_its_error(page: Page) -> None:
    run = {"id": "r1", "state": "failed", "done": 1, "traces": 2, "calls": 3, "failed": 0, "cost_usd": 0.5}
    _replace(page, "/runs", json.dumps({**run, "error": "the budget is spent"}))
    _answer(page, "/overview", "({ ...body, can: [...body.can, 'POST /runs'] })")
    page.go("#/agents?window=all")
    page.go("#/session/session-1-5")
    for button in ("Estimate cost", "Start"):
        found = f"[...document.querySelectorAll('.again button')].find((each) => each.textContent === '{button}')"
        page.wait(f"{found} && !{found}.hidden")
        page.run(f"{found}.click()")
    page.wait("document.querySelector('.again [role=status]').textContent.includes('the budget is spent')")


def test_fewer_findings_are_not_shown_in_the_colour_of_a_pass(page: Page) -> None:
    _answer(page, "/compare", "({ ...body, rates: body.rates.map((each) => ({ ...each, p: 0.01, difference: 0.2 })) })")
    page.go("#/comparison")
    assert page.text("h2:has(small)").startswith("Passed, or without findings")
    rows = page.run("[...document.querySelector('table.compared').tBodies[0].rows].map((row) => row.innerText)")
    [row] = [text for text in rows if "Runs without findings" in text]
    assert "with findings" in row
    assert "passed" not in row
    assert page.count("table.compared td.good") == len(rows) - 1


def test_the_first_settings_use_http_if_grpc_has_no_port(page: Page, address: str) -> None:
    _answer(page, "/overview", "({ ...body, metrics: [] })")
    _answer(page, "/page/index", "({ ...body, index: { ...body.index, order: [] } })")
    page.go("#/?window=all")
    choose = "const select = document.querySelector('.beginning select'); select.value = name; "
    choose += "select.dispatchEvent(new Event('change')); return document.querySelector('.beginning').textContent;"
    names = "[...document.querySelectorAll('.beginning option')].map((each) => each.value)"
    shown = page.run(f"{names}.map((name) => {{ {choose} }})")
    assert not [text for text in shown if ":null" in text]
    assert all(f"OTEL_EXPORTER_OTLP_ENDPOINT={address}" in text for text in shown)


def test_a_run_with_an_older_label_is_not_in_the_review_queue(page: Page) -> None:
    labels = [{"session_id": f"session-1-{at}"} for at in range(UNCLEAR["1"])]
    first, second = json.dumps({"items": labels[:1], "next": "2"}), json.dumps({"items": labels[1:], "next": None})
    _replace(page, "/annotations?limit=500", f"asked.includes('cursor=2') ? {second} : {first}")
    page.go("#/trust")
    assert "Agree (a)" in page.text(".review")
