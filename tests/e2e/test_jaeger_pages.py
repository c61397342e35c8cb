"""Jaeger's pages: documented searches, and a looping run.

JAEGER_UI=FOLDER python -m pytest -m e2e tests/e2e/test_jaeger_pages.py  # to build them: docs/internals/interfaces.md
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from support.chromium import Page, chromium
from support.jaeger import BINARY, pages
from support.jaeger_house import JaegerHouse, jaeger_house
from support.jaeger_pages import SERVICE, JaegerPages

PROGRAM = chromium()
_DOCS = (Path(__file__).parents[2] / "docs" / "guides" / "dashboards.md").read_text()
pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(600),
    pytest.mark.skipif(PROGRAM is None, reason="no Chromium here (Debian: apt-get install chromium)"),
    pytest.mark.skipif(not BINARY.exists(), reason=f"needs {BINARY}: python tests/support/programs.py jaeger"),
    pytest.mark.skipif(find_spec("litellm") is None, reason="needs a judge: pip install . ./collector[judge]"),
]


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[JaegerHouse]:
    shown = pages(tmp_path_factory.mktemp("pages"))
    if shown is None:
        pytest.skip("needs Jaeger's built pages: $JAEGER_UI, see docs/internals/interfaces.md")
    with jaeger_house(tmp_path_factory.mktemp("house"), shown) as made:
        yield made


@pytest.fixture(scope="module")
def jaeger(house: JaegerHouse, tmp_path_factory: pytest.TempPathFactory) -> Iterator[JaegerPages]:
    assert PROGRAM is not None
    with Page(PROGRAM, tmp_path_factory.mktemp("chromium"), 1280, 1000) as page:
        yield JaegerPages(page, house.url)


def _searches() -> list[str]:
    """Return the documented tags, with placeholders filled."""
    table = _DOCS.partition("| to find | tags in Jaeger")[2].partition("\n\n")[0]
    return [found for row in table.splitlines()[2:] for found in re.findall(r"`([^`]+=[^`]+)`", row.split("|")[2])]


def test_docs_list_the_expected_jaeger_searches() -> None:
    assert {re.sub("=[^= ]+$", "", each) for each in _searches()} == {
        "pandaeval.verdict",
        "pandaeval.verdict=fail pandaeval.service",
        "pandaeval.verdict=fail pandaeval.session.id",
        "pandaeval.score.tool_loop",
        "pandaeval.level",
    }


def test_search_for_failures_finds_all_failed_traces_in_red_and_no_passed_trace(
    house: JaegerHouse, jaeger: JaegerPages
) -> None:
    jaeger.search("pandaeval.verdict=fail")
    found = jaeger.found()
    assert house.ids(failed=True) <= found.keys()
    assert not house.ids(failed=False) & found.keys()
    assert all(SERVICE in each["red"] for each in found.values())


def test_search_for_failures_can_be_limited_to_a_service_or_a_session(house: JaegerHouse, jaeger: JaegerPages) -> None:
    failed = house.trace_of("tool_loop")
    for tags in (
        f"pandaeval.verdict=fail pandaeval.service={failed['service']}",
        f"pandaeval.verdict=fail pandaeval.session.id={failed['session_id']}",
    ):
        jaeger.search(tags)
        found = jaeger.found()
        assert failed["trace_id"] in found
        assert not house.ids(failed=False) & found.keys()


def test_search_finds_a_trace_by_its_displayed_score(house: JaegerHouse, jaeger: JaegerPages) -> None:
    failed = house.trace_of("tool_loop")
    jaeger.search(f"pandaeval.score.tool_loop={round(failed['score'], 6):g}")
    assert failed["trace_id"] in jaeger.found()


def test_session_titles_in_the_list_show_failures(house: JaegerHouse, jaeger: JaegerPages) -> None:
    jaeger.search("pandaeval.level=session")
    found = jaeger.found()
    sessions = {each["session_id"] for each in house.results if each["level"] == "session"}
    judged = [each for each in house.results if each["level"] == "session" and each["evaluator"]["kind"] == "llm"]
    assert len(found) == len(sessions), "each session has one trace for its results"
    failing = [each["title"] for each in found.values() if each["red"]]
    wrong = {each["session_id"] for each in judged if each["metric"] == "correctness" and each["success"] is False}
    assert len(failing) == len(wrong), "if a judge runs, only its verdict makes a session red"
    assert all(re.fullmatch(rf"{SERVICE}: ✗ session( \w+)?.*", title) for title in failing)


def test_a_looping_run_is_shown_as_failed_with_its_reason(house: JaegerHouse, jaeger: JaegerPages) -> None:
    failed = house.trace_of("tool_loop")
    jaeger.open(failed["trace_id"], house.inline_span(failed["trace_id"]))
    rows = {row["name"]: row["red"] for row in jaeger.rows()}
    [name] = [name for name in rows if name.startswith("✗ ") and "tool_loop" in name]
    assert rows[name]
    shown = jaeger.detail()
    assert shown.startswith(name)
    first, _, rest = shown.partition("Tags:")[2].partition("pandaeval.reason")
    assert "pandaeval.verdict" in first
    assert "fail" in first
    assert failed["reason"][:40] in rest[: rest.find("Process:")]
    assert "References" in shown, "links to the calls of the loop"


def test_a_healthy_run_is_not_red(house: JaegerHouse, jaeger: JaegerPages) -> None:
    trace_id = min(house.ids(failed=False))
    jaeger.open(trace_id)
    evaluations = [row for row in jaeger.rows() if row["name"].startswith(("✓ ", "evaluate "))]
    assert evaluations
    assert not any(row["red"] for row in evaluations)
