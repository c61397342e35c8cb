"""Comparisons of two filters. API, MCP and command show the same figures, and each count equals the listed rows."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from math import comb, sqrt
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient
from typer.testing import CliRunner

from pandaeval_collector.cli import app
from pandaeval_collector.cli._run_place import URL, over_http
from pandaeval_collector.show.api.app import read_only_app
from pandaeval_collector.show.api.client import AsyncApiClient
from pandaeval_collector.show.api.work import Work
from pandaeval_collector.show.mcp.server import server
from pandaeval_collector.show.report.comparison import RUNS as CLEAN
from pandaeval_collector.show.view.compared import share_text
from support.api import ReadInterfaces
from support.versions import CRASHES, LIES, LOOPS, NOW, RUNS, UNCLEAR, WRONG, fill

ONE, TWO = "attribute=service.version=1", "attribute=service.version=2"
ASKED = {"a.attribute": "service.version=1", "b.attribute": "service.version=2"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("versions")
    store = fill(folder)
    yield folder
    store.close()


@pytest.fixture(scope="module")
def client(folder: Path) -> Iterator[TestClient]:
    lookouts = ReadInterfaces(folder, Work())
    yield TestClient(Starlette(routes=lookouts.routes), base_url="http://localhost")
    lookouts.close()


def compared(client: TestClient, **asked: Any) -> Any:
    answer = client.get("/api/v1/compare", params=asked or ASKED)
    assert answer.status_code == 200, answer.text
    return answer.json()


def listed(client: TestClient, of: str, **asked: Any) -> int:
    """Return the number of rows on all pages of a list."""
    count, cursor = 0, None
    while True:
        page = client.get(f"/api/v1/{of}", params={**asked, **({} if cursor is None else {"cursor": cursor})}).json()
        count, cursor = count + len(page["items"]), page["next"]
        if cursor is None:
            return count


def p_value(hits: int, n: int, other_hits: int, other_n: int) -> float:
    """Return the p-value of Fisher's exact test by enumerating all tables."""
    total = hits + other_hits
    ways = [comb(n, at) * comb(other_n, total - at) for at in range(total + 1)]
    return sum(each for each in ways if each <= ways[hits]) / sum(ways)


def wilson(hits: int, n: int) -> tuple[float, float]:
    """Return Wilson's 95 % interval."""
    z, share = 1.959963984540054, hits / n
    middle, root = share + z * z / (2 * n), z * sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return (middle - root) / (1 + z * z / n), (middle + root) / (1 + z * z / n)


def test_rates_have_wilson_intervals_and_fishers_exact_p(client: TestClient) -> None:
    found = compared(client)
    assert [found[side]["runs"] for side in "ab"] == [*RUNS.values()]
    rates = {rate["metric"]: rate for rate in found["rates"]}
    assert [*rates][:2] == ["session.correctness", CLEAN]
    undecided = {"session.correctness": UNCLEAR}
    bad = {"trace.tool_loop": LOOPS, "trace.response": CRASHES, "trace.grounding": LIES, "session.correctness": WRONG}
    bad[CLEAN] = LOOPS  # all other failures are in runs that also loop
    for metric, failing in bad.items():
        tables = []
        for side, version in zip("ab", RUNS, strict=True):
            share = rates[metric][side]
            n = RUNS[version] - undecided.get(metric, {}).get(version, 0)
            tables += [n - failing[version], n]
            assert (share["passed"], share["failed"]) == (n - failing[version], failing[version])
            assert share["undecided"] == RUNS[version] - n
            assert (share["low"], share["high"]) == pytest.approx(wilson(share["passed"], n))
        assert rates[metric]["p"] == pytest.approx(p_value(*tables))
        assert rates[metric]["difference"] == pytest.approx(tables[2] / tables[3] - tables[0] / tables[1])
        assert rates[metric]["low"] <= rates[metric]["difference"] <= rates[metric]["high"]


def test_each_count_equals_the_number_of_listed_rows(client: TestClient) -> None:
    found = compared(client)
    for side, version in zip("ab", RUNS, strict=True):
        group = {"attribute": f"service.version={version}"}
        assert found[side]["runs"] == listed(client, "traces", **group)
        assert found[side]["failed"] == listed(client, "traces", **group, failed="true")
        for rate in found["rates"]:
            of = "sessions" if rate["metric"].startswith("session.") else "traces"
            for name, success in (("passed", "true"), ("failed", "false")):
                chosen = {"metric": rate["metric"], "success": success}
                if rate["metric"] == CLEAN:
                    chosen = {"failed": str(name == "failed").lower()}
                assert rate[side][name] == listed(client, of, **group, **chosen), (rate["metric"], name)
        for row in found["incidents"]:
            of = "sessions" if row["metric"].startswith("session.") else "traces"
            assert row[side] == listed(client, of, **group, incident=",".join(row["ids"])), row["metric"]


def test_incidents_have_a_trend_by_their_share_of_runs(client: TestClient) -> None:
    rows = {row["metric"]: row for row in compared(client)["incidents"]}
    assert {metric: row["trend"] for metric, row in rows.items()} == {
        "trace.grounding": "new",
        "trace.tool_loop": "growing",
        "session.correctness": "growing",
        "trace.response": "gone",
    }
    assert next(iter(rows)) == "trace.grounding", "new incidents come first"
    assert rows["trace.tool_loop"]["p"] == pytest.approx(p_value(LOOPS["1"], RUNS["1"], LOOPS["2"], RUNS["2"]))
    turned = {f"{side}.attribute": f"service.version={version}" for side, version in (("a", "2"), ("b", "1"))}
    trends = {row["metric"]: row["trend"] for row in compared(client, **turned)["incidents"]}
    assert (trends["trace.tool_loop"], trends["trace.grounding"], trends["trace.response"]) == (
        "shrinking",
        "gone",
        "new",
    )


def test_latency_tokens_and_cost_of_both_groups_are_compared(client: TestClient) -> None:
    measures = {row["name"]: (row["a"], row["b"]) for row in compared(client)["measures"]}
    assert measures["us"] == (1_000_034, 2_000_039)
    assert measures["us95"] == (1_000_066, 2_000_075)
    assert measures["tokens"] == (134, 239)
    assert measures["usd"] == pytest.approx((0.01, 0.02))


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ({"environment": "env-1"}, {"environment": "env-2"}),
        ({"until": "2023-11-16T00:00:00Z"}, {"since": "2023-11-16T00:00:00Z"}),
    ],
)
def test_groups_by_environment_or_time_give_the_same_comparison(
    client: TestClient, a: dict[str, str], b: dict[str, str]
) -> None:
    asked = {f"{side}.{name}": value for side, group in (("a", a), ("b", b)) for name, value in group.items()}
    assert compared(client, **asked) == compared(client)
    assert NOW < 1_700_092_800_000 < NOW + 2 * 86_400_000


def test_a_group_without_runs_has_no_rate_and_no_p_value(client: TestClient) -> None:
    found = compared(client, **{"b.until": "1990-01-01T00:00:00Z"})
    assert (found["b"]["runs"], found["rates"][0]["b"]["share"], found["rates"][0]["p"]) == (0, None, None)


def test_result_filters_and_unknown_names_are_rejected(client: TestClient) -> None:
    answer = client.get("/api/v1/compare", params={"a.agent": "dusk"})
    assert (answer.status_code, answer.json()["detail"]) == (422, "agent: there is no dusk; did you mean desk?")
    answer = client.get("/api/v1/compare", params={"metric": "lop"})
    assert answer.status_code == 422
    wrong = client.get("/api/v1/compare", params={"a.attribute": "no pair"})
    assert wrong.json()["detail"].startswith("a.attribute"), "the side is named"


async def test_command_and_mcp_show_the_figures_of_the_api(folder: Path, client: TestClient) -> None:
    found = compared(client)
    groups = {side: {"attribute": [ASKED[f"{side}.attribute"]]} for side in "ab"}
    with read_only_app(folder) as api:
        asker = AsyncApiClient.within(api)
        told = str(await server(asker).call_tool("compare_versions", groups))
        await asker.close()
    words = ["compare", "--where", ONE, "--where", TWO, "--store", str(folder)]
    wide = {"COLUMNS": "300"}
    done = await asyncio.to_thread(CliRunner().invoke, app, words, env=wide)
    assert done.exit_code == 0, done.output
    for rate in found["rates"]:
        shares = [f"{rate[side]['share']:.0%} of {rate[side]['passed'] + rate[side]['failed']}" for side in "ab"]
        for text in (rate["metric"], *shares, f"{rate['difference']:+.0%} (", f"{rate['p']:.2g}"):
            assert text in done.output, text
            assert text in told, text
    for row in found["incidents"]:
        assert f"{row['trend']} incident {row['id']}, a {row['a']}, b {row['b']}" in told
        assert row["id"] in done.output
    assert "latency (median): a 1.00 s, b 2.00 s" in told
    listed = f"pandaeval traces list --attribute service.version=1 --store {folder}\n"
    assert f"70 runs of a: {listed}" in done.output, "the list is of the same store"


@pytest.mark.parametrize(
    ("url", "variable", "place"),
    [(URL, None, ()), ("http://c:1", None, ("--url", "http://c:1")), (URL, "http://c:1", ("--url", URL))],
)
def test_a_printed_command_names_an_address_that_is_not_the_default(
    url: str, variable: str | None, place: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PANDAEVAL_URL", raising=False)
    if variable:
        monkeypatch.setenv("PANDAEVAL_URL", variable)
        with over_http(variable) as default:
            assert default.place == ()
    with over_http(url) as api:
        assert api.place == place


def test_the_command_requires_two_valid_filters(folder: Path) -> None:
    done = CliRunner().invoke(app, ["compare", "--where", ONE, "--store", str(folder)])
    assert (done.exit_code, "give --where twice" in done.output) == (2, True)
    done = CliRunner().invoke(app, ["compare", "--where", "label=loop", "--where", ONE, "--store", str(folder)])
    assert (done.exit_code, "unknown key 'label'" in done.output) == (2, True)
    done = CliRunner().invoke(app, ["compare", "--where", "time=7d..", "--where", "", "--store", str(folder)])
    assert done.exit_code == 0, done.output


def test_a_share_below_100_percent_is_not_shown_as_100_percent() -> None:
    share = {"share": 399 / 400, "passed": 399, "failed": 1, "low": 0.986, "high": 0.9996, "undecided": 2}
    assert share_text(share) == "over 99% of 400 (99% to 100%), 2 undecided"
