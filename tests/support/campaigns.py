"""The long proofs of docs/internals/ledgers.md, with command, ledger and aim."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

PROOFS = Path(__file__).parents[1] / "lab" / "proofs"
BEGINS, ENDS = "<!-- proofs: python tests/lab/proofs/all.py --table -->\n", "<!-- end of proofs -->"
Line = Mapping[str, Any]
CANDIDATE = (
    *("25c5799f8", "e1dea4ec4", "e85f8eed1", "dfbe34406", "8c1567c1e", "0c29007af", "c6df334d8", "78aabcc68"),
    *("c49e2f875", "3f2490f20", "364f26555", "62ea7578c", "286a767ff", "24bb7b9f7", "9ed499282"),
    "d2fee43d3",
)
"""The commits of the release candidate of 0.2.0.

From ``8c1567c1e`` to ``c49e2f875``, receivers, store, pipeline, judge, exporters and span processor have the same code.
``3f2490f20`` adds the models of other conventions to the attributes of a row, and a log message to the span processor.
``364f26555`` gives slow processes longer to start. From ``62ea7578c``, processes of a killed collector end at once, and
the process that calls models has nice value 10. In ``24bb7b9f7``, a pause of a judge counts traces. From ``9ed499282``,
an attempt of the judge that a crash interrupts does not count. ``d2fee43d3`` rejects spans of the span processor for a
full trace before its decision too, and changes rules of scoring. Other commits rename functions and split modules.
"""


@dataclass(frozen=True, slots=True)
class Campaign:
    """A long proof.

    ``whole``, ``quick``: arguments. ``count``: a line's share of ``aim``. ``wanted``: whether a line
    counts. ``summary``: text about the lines.
    """

    name: str
    script: str
    whole: str
    quick: str
    ledger: str
    unit: str
    aim: int
    count: Callable[[Line], float] = lambda line: 1
    wanted: Callable[[Line], bool] = lambda line: True
    summary: Callable[[Sequence[Line]], str] = lambda lines: ""

    @property
    def command(self) -> str:
        return f"python tests/lab/proofs/{self.script} {self.whole}".strip()

    def lines(self, folder: Path = PROOFS) -> list[Line]:
        """Return the counted lines of the ledger."""
        file = folder / self.ledger
        if not self.ledger or not file.exists():
            return []
        return [line for line in map(json.loads, file.read_text().splitlines()) if self.wanted(line)]

    def problems(self, folder: Path = PROOFS) -> int:
        """Return the number of ledger lines with a problem."""
        every = replace(self, wanted=lambda line: True).lines(folder)
        return sum(bool(line.get("problems")) or line.get("holds") is False for line in every)


def _sum(*names: str) -> Callable[[Sequence[Line]], str]:
    def text(lines: Sequence[Line]) -> str:
        return ", ".join(f"{sum(line.get(name, 0) for line in lines):,} {name.replace('_', ' ')}" for name in names)

    return text


def _figures(*names: str) -> Callable[[Sequence[Line]], str]:
    def text(lines: Sequence[Line]) -> str:
        return _sum(*names)([line["figures"] for line in lines])

    return text


def _soaked(lines: Sequence[Line]) -> str:
    newest = lines[-1]
    return f"{newest['rss_mb']['an_hour']:+.1f} MB/h (aim 2), descriptors {newest['fds']['an_hour']:+.1f}/h"


def _soaked_hostile(lines: Sequence[Line]) -> str:
    newest = lines[-1]
    front, line = (newest["first_and_last"][name] for name in ("rss_mb", "line_rss_mb"))
    held = f"front {front[0]:.0f} to {front[1]:.0f} MB, line {line[0]:.0f} to {line[1]:.0f} MB"
    return f"{newest['told']['hostile: acknowledged']} hostile traces, {held}"


def _beside(lines: Sequence[Line]) -> str:
    """Return the worst of each input's newest trials."""
    newest = {(line["input"], line["times"]): line for line in lines}.values()
    p99, alone = (max(line[part]["p99_s"] or 0.0 for line in newest) for part in ("beside", "alone"))
    later, load = max(line["decisions"]["later_s"] or 0.0 for line in newest), max(line["load"] for line in newest)
    return (
        f"p99 {p99:.2f} s at most (without hostile traces {alone:.2f}), decisions at most {later:.1f} s later, "
        f"load {load:.0f} at most"
    )


def _named(lines: Sequence[Line]) -> str:
    ways: dict[str, int] = {}
    for line in lines:
        for how, count in line["named"].items():
            ways[how] = ways.get(how, 0) + count
    return ", ".join(f"{count} {how}" for how, count in sorted(ways.items(), key=lambda each: -each[1]))


def _drained(lines: Sequence[Line]) -> str:
    return f"successor ready after {max(line['ready_s'] for line in lines):.1f} s at most, " + _sum("failures")(lines)


def _cut_off(lines: Sequence[Line]) -> str:
    """Return lossy cuts by durability."""
    parts = []
    for durability in ("full", "normal"):
        some = [line for line in lines if line["durability"] == durability]
        cuts, lossy = (sum(line[name] for line in some) for name in ("cuts", "lossy"))
        parts.append(f"`{durability}`: {lossy:,} of {cuts:,} lost data")
    return ", ".join(parts) + ", " + _sum("started")(lines)


def _recovered(lines: Sequence[Line]) -> str:
    longest = max(line["recovered_s"] for line in lines)
    return f"{_sum('acknowledged', 'results', 'verdicts')(lines)}, complete {longest:,.0f} s after the outage"


def _lived(lines: Sequence[Line]) -> str:
    runs = sum(sum(line["runs"].values()) for line in lines)
    fired = sorted({name for line in lines for name in line["alerts"]})
    return f"{runs:,} runs, {_sum('results', 'verdicts')(lines)}, alerts: {', '.join(fired)}"


def _overloaded(lines: Sequence[Line]) -> str:
    times, refused = min(line["offered"] / line["sustained"] for line in lines), 0
    for line in lines:
        refused += sum(count for answer, count in line["answers"].items() if answer != "200")
    peak, after = (max(line[name] for line in lines) for name in ("peak_mib", "recovered_s"))
    return f"{times:.1f} times the throughput, {refused:,} refusals, {peak} MiB of 512, no lag {after:,.0f} s later"


_KILL = "--ledger tests/lab/proofs/ledger.jsonl"
CAMPAIGNS: tuple[Campaign, ...] = (
    Campaign(
        "kill -9 under load, with failing sinks",
        "kill.py",
        f"--cycles 10000 --seed 1 {_KILL}",
        "--cycles 10 --seed 99",
        "ledger.jsonl",
        "kills",
        10_000,
        count=lambda line: float(line["cycles"]),
        summary=_sum("acknowledged", "results"),
    ),
    Campaign(
        "kill -9 while traces are judged",
        "kill_judged.py",
        "--cycles 10000 --seed 1",
        "--cycles 4 --seed 99",
        "kill-judged-ledger.jsonl",
        "kills",
        10_000,
        count=lambda line: float(line["cycles"]),
        summary=_sum("acknowledged", "results", "verdicts", "graded"),
    ),
    Campaign(
        "kill -9 of the judge process or of the collector",
        "judge.py",
        "--batches 8 --traces 205 --kills 13 --seed 1 --ledger tests/lab/proofs/judge-ledger.jsonl",
        "--batches 1 --traces 40 --kills 3 --seed 99",
        "judge-ledger.jsonl",
        "kills",
        100,
        count=lambda line: float(sum(line["found"]["kills"].values())),
        summary=lambda lines: _sum("jobs")([line["found"] for line in lines]),
    ),
    Campaign(
        "kill -9 in evaluation runs",
        "runs.py",
        "--traces 2000 --kills 100 --seed 1 --ledger tests/lab/proofs/runs-ledger.jsonl",
        "--traces 200 --kills 3 --seed 99",
        "runs-ledger.jsonl",
        "kills",
        100,
        count=lambda line: float(line["kills"]),
        summary=_sum("questions", "repeated"),
    ),
    Campaign(
        "simulated power cuts",
        "power_cuts.py",
        "--cuts 10000 --seed 1",
        "--cuts 100 --seed 99",
        "power-cuts-ledger.jsonl",
        "cuts",
        10_000,
        count=lambda line: float(line["cuts"] * (line["durability"] == "full")),
        summary=_cut_off,
    ),
    Campaign(
        "Kafka, three workers: kills of workers and broker",
        "kafka.py",
        "--cycles 1000 --seed 4",
        "",
        "kafka-ledger.jsonl",
        "cycles",
        1000,
        wanted=lambda line: bool(line["holds"]),
    ),
    Campaign(
        "starts under load",
        "starts.py",
        "--starts 1000 --seed 1",
        "--starts 3 --seed 99",
        "starts-ledger.jsonl",
        "starts",
        1000,
        count=lambda line: float(line["starts"]),
        summary=_sum("aborted"),
    ),
    Campaign(
        "SIGTERM under load, and start of a successor",
        "drains.py",
        "--drains 200 --seed 1",
        "--drains 3 --seed 99",
        "drains-ledger.jsonl",
        "drains",
        200,
        count=lambda line: float(line["drains"]),
        summary=_drained,
    ),
    Campaign(
        "overload ×10 for ten minutes",
        "overload.py",
        "--minutes 10",
        "--minutes 0.3",
        "overload-ledger.jsonl",
        "minutes",
        10,
        count=lambda line: float(line["minutes"]),
        summary=_overloaded,
    ),
    Campaign(
        "outage of judge and sink",
        "outage.py",
        "--minutes 30 --seed 2",
        "--minutes 0.3 --seed 99",
        "outage-ledger.jsonl",
        "minutes",
        30,
        count=lambda line: float(line["minutes"]),
        summary=_recovered,
    ),
    Campaign(
        "damaged files of a stopped collector",
        "damage.py",
        "--cases 1000 --seed 1",
        "--cases 100 --seed 99",
        "damage-ledger.jsonl",
        "cases",
        1000,
        count=lambda line: float(line["cases"]),
        summary=_named,
    ),
    Campaign(
        "malformed requests over OTLP, gRPC, API, page and MCP",
        "fuzz_requests.py",
        "--requests 960000 --seed 31",
        "--requests 20000 --seed 99",
        "fuzz-ledger.jsonl",
        "requests",
        2_000_000,
        count=lambda line: float(line["requests"]),
        summary=lambda lines: f"at most {max(line['peak_mib'] for line in lines)} MiB",
    ),
    Campaign(
        "traffic for hours",
        "soak.py",
        "--hours 4 --rate 2 --seed 1",
        "--hours 0.05 --rate 2 --seed 99",
        "soak-ledger.jsonl",
        "minutes",
        240,
        count=lambda line: float(line["minutes"]),
        summary=_soaked,
    ),
    Campaign(
        "traffic for hours, with a hostile trace each second",
        "soak.py",
        "--hours 2 --rate 2 --hostile 1 --seed 7 --ledger tests/lab/proofs/hostile-soak-ledger.jsonl",
        "--hours 0.05 --rate 2 --hostile 1 --seed 99",
        "hostile-soak-ledger.jsonl",
        "minutes",
        120,
        count=lambda line: float(line["minutes"]),
        summary=_soaked_hostile,
    ),
    Campaign(
        "random hostile traces, CPU time per byte",
        "hostile_traces.py",
        "--traces 10000 --seed 1",
        "--traces 100 --seed 99",
        "hostile-traces-ledger.jsonl",
        "traces",
        10_000,
        count=lambda line: float(line["traces"]),
        summary=lambda lines: f"{lines[-1]['us_a_byte']:.2f} µs per byte, {lines[-1]['most_s']} s for the slowest",
    ),
    Campaign(
        "hostile traces together with ordinary traces",
        "beside.py",
        "--seed 1",
        "--quick --seed 99",
        "beside-ledger.jsonl",
        "trials",
        18,
        summary=_beside,
    ),
    Campaign(
        "random orders of the protocol's steps",
        "model.py",
        "--steps 1000000 --seed 1 --resume",
        "--steps 2500 --seed 99",
        "model-ledger.jsonl",
        "steps",
        1_000_000,
        count=lambda line: float(line["figures"].get("steps", 0)),
        summary=_figures("deaths", "acknowledged", "revisions", "verdicts", "members"),
    ),
    Campaign(
        "a day in the life: dashboards, alerts, page, MCP",
        "day.py",
        "--minutes 60 --seed 1",
        "--minutes 6 --seed 99",
        "day-ledger.jsonl",
        "minutes",
        60,
        count=lambda line: float(line["length"]),
        summary=_lived,
    ),
)
OF_TESTS = (
    ("deletion, with kills", "tests/integration/test_delete.py tests/unit/store/test_deleting.py"),
    ("full, failing and read-only disk", "tests/integration/test_full_disk.py tests/unit/pipeline/test_guard.py"),
    ("OpenTelemetry's Python SDK (newest and 1.30), gRPC and HTTP", "tests/integration/test_sdk_export.py"),
    ("OpenTelemetry's Java agent and JavaScript SDK, without a collector", "tests/e2e/test_sdks_elsewhere.py"),
    (
        "OpenTelemetry Collector as sender and as receiver",
        "tests/e2e/test_otelcol_configs.py tests/integration/test_otelcol_sink.py",
    ),
)
"""Properties proven by tests, without a ledger."""


def table(folder: Path = PROOFS) -> str:
    """Return the ledgers' results in Markdown."""
    rows = [
        "| reliability test | done | on 0.2.0 | problems | result | script or command |",
        "|---|---|---|---|---|---|",
    ]
    rows += [f"| {' | '.join((each.name, *_cells(each, folder)))} |" for each in CAMPAIGNS]
    for name, files in OF_TESTS:
        command = f"`python -m pytest -m 'slow or not slow' {files}`" if files else "none yet"
        rows.append(f"| {name} | {'a test' if files else '**not run**'} | | | | {command} |")
    return "\n".join(rows)


def _cells(campaign: Campaign, folder: Path) -> tuple[str, ...]:
    lines = campaign.lines(folder)
    script = f"`{campaign.script}`" if campaign.script else "none yet"
    aim = f"{campaign.aim:,} {campaign.unit}"
    if not lines:
        return f"**not run**, of {aim}", "0", "", "", script
    done = sum(map(campaign.count, lines))
    recent = sum(campaign.count(line) for line in lines if line.get("commit") in CANDIDATE)
    problems = str(campaign.problems(folder))
    return f"{done:,.0f} of {aim}", f"{recent:,.0f}", problems, campaign.summary(lines), script


def with_table(page: str) -> str:
    """Return the page with the table between its marks."""
    before, begins, rest = page.partition(BEGINS)
    _, ends, after = rest.partition(ENDS)
    assert all((begins, ends)), "the page has no place for the table"
    return f"{before}{BEGINS}{table()}\n{ENDS}{after}"
