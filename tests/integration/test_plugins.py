"""Installed plugins in real processes; broken plugins affect only themselves."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span

from support import forked
from support.chromium import Page, chromium
from support.collector import CollectorProcess
from support.judge import JudgeAnswer, JudgeServer, question_of, verdict
from support.senders import GrpcSender

_PLUGINS = Path(__file__).parents[1] / "plugins"
_CLI = "from pandaeval_collector.cli import main; main()"
_FORKING = f"from support import forked; forked.install(); {_CLI}"
"""Forks the judge process, which does not use plugins."""
_TRACE = 7 << 100
_OWN = '''
"""Was the agent polite? It does not judge what it said."""

from pandaeval_collector.scoring.metric import Metric
from pandaeval_collector.base.score import Score


def _evaluate(trace, context):
    return Score(1.0 if "please" in (trace.output or "") else 0.25, f"{len(trace.tool_calls)} calls")


METRIC = Metric("trace", "politeness", "code", "1", 0.5, "Was the agent polite?", "answer text", _evaluate)
'''

_JUDGED = """
from pandaeval_collector.judge.rubric import Reason, Rubric, Verdict
from pandaeval_collector.scoring.metric import Metric
from pandaeval_collector.base.score import Score


class Kindness(Verdict):
    reason: Reason
    confidence: float


RUBRIC = Rubric(name="kindness", version="1", text="How kind was the agent?", verdict=Kindness)


async def _ask(trace, judge):
    verdict = await judge.ask(RUBRIC)
    return Score(verdict.confidence, verdict.reason)


METRIC = Metric("trace", "kindness", "llm", "1", 0.5, "Was it kind?", "an answer", lambda *_: None, ask=_ask)
"""

_MOODY = {
    "moody_metric": """
from pandaeval_collector.scoring.metric import Metric


def _evaluate(trace, context):
    raise LookupError("the metric is out of order")


METRIC = Metric("trace", "moody", "code", "1", 0.5, "Is it?", "nothing", _evaluate)
""",
    "moody_dialect": """
class Moody:
    name, priority, roots, scopes, names = "moody", 90, frozenset({"skylark"}), (), ()

    def read(self, span, logs):
        raise LookupError("the dialect is out of order\\x1b[31m")


DIALECT = Moody()
""",
    "moody_exporter": """
class Moody:
    name, source, off = "moody", "results", False

    async def open(self, position):
        return position

    async def export(self, rows):
        raise LookupError("the exporter is out of order")

    async def close(self):
        pass


def exporters(settings, around):
    yield Moody()
""",
}
_TRACEBACK = "Traceback (most recent call last)"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the five packages."""
    folder = tmp_path_factory.mktemp("installed")
    packages = [str(_PLUGINS / kind) for kind in ("metric", "judged", "dialect", "exporter", "fault")]
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    done = subprocess.run(
        [*command, "--no-build-isolation", "--target", str(folder), *packages], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    """Return a folder with a broken package."""
    held = {"broken_metric": "raise RuntimeError('no such luck')", "broken_dialect": "import nowhere", "empty": ""}
    return _package(tmp_path, "broken", held, "bad", "broken_metric", "broken_dialect", "empty")


@pytest.fixture
def moody(tmp_path: Path) -> Path:
    """Return a folder with plugins that always raise."""
    return _package(tmp_path, "moody", _MOODY, "moody", *_MOODY)


def _package(
    parent: Path, name: str, held: Mapping[str, str], point: str, metric: str, dialect: str, exporter: str
) -> Path:
    """Return a folder with a package of the modules ``held``."""
    folder = parent / name
    about = folder / f"{name}_pack-0.1.dist-info"
    about.mkdir(parents=True)
    for module, text in held.items():
        (folder / f"{module}.py").write_text(text)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}-pack\nVersion: 0.1\n")
    (about / "entry_points.txt").write_text(
        f"[pandaeval.metrics]\n{point} = {metric}\n[pandaeval.dialects]\n{point} = {dialect}\n"
        f"[pandaeval.exporters]\n{point} = {exporter}\n"
    )
    return folder


@pytest.fixture
def own(tmp_path: Path) -> Path:
    file = tmp_path / "politeness.py"
    file.write_text(_OWN)
    return file


def _span(number: int, parent: int, **values: str) -> Span:
    start = 1_760_000_000_000_000_000 + number * 1_000_000
    return Span(
        trace_id=_TRACE.to_bytes(16, "big"),
        span_id=number.to_bytes(8, "big"),
        parent_span_id=parent.to_bytes(8, "big") if parent else b"",
        name=f"skylark {values['step']}",
        start_time_unix_nano=start,
        end_time_unix_nano=start + 500_000,
        attributes=[KeyValue(key=f"skylark.{key}", value=AnyValue(string_value=text)) for key, text in values.items()],
    )


def _request() -> ExportTraceServiceRequest:
    """Return a run in the plugin's dialect."""
    spans = [
        _span(2, 1, step="tool", name="search", input='{"q": "trains"}', output='{"found": 3}'),
        _span(1, 0, step="run", name="guide", input="Which trains?", output="word " * 300, thread_id="t-1"),
    ]
    return ExportTraceServiceRequest(resource_spans=[ResourceSpans(scope_spans=[ScopeSpans(spans=spans)])])


def _path(*folders: Path) -> str:
    return os.pathsep.join([*map(str, folders), *(entry for entry in sys.path if entry)])


def _run(
    *arguments: object, path: str, code: int = 0, tracebacks: int = 0, program: str = _CLI, **variables: str
) -> subprocess.CompletedProcess[str]:
    outside = {key: value for key, value in os.environ.items() if not key.startswith(("PANDAEVAL", "OTEL_"))}
    done = subprocess.run(
        [sys.executable, "-c", program, *map(str, arguments)],
        env=outside | {"PYTHONPATH": path} | variables,
        capture_output=True,
        text=True,
        timeout=240,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == code, done.stderr
    assert done.stderr.count(_TRACEBACK) == tracebacks, done.stderr
    return done


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Write the run as length-delimited protobuf."""
    body = _request().SerializeToString()
    size, rest = [], len(body)
    while rest > 127:
        size.append(rest & 127 | 128)
        rest >>= 7
    target = tmp_path / "run.pb"
    target.write_bytes(bytes([*size, rest]) + body)
    return target


@pytest.mark.slow  # a collector scores with the same registry
def test_files_are_scored_with_installed_metrics_and_dialects(installed: Path, own: Path, file: Path) -> None:
    output = _run(
        *("evaluate", file, "--format", "json"), path=_path(installed), PANDAEVAL_METRICS__MODULES=f"[{own}]"
    ).stdout
    results = {each["metric"]: each for each in map(json.loads, output.splitlines()) if each["level"] == "trace"}
    assert results["brevity"]["score"] == pytest.approx(0.5)
    assert results["brevity"]["reason"] == "300 words"
    assert results["politeness"]["score"] == 0.25
    assert results["tool_loop"]["metadata"]["calls"] == 1, "the dialect must read the tool call"
    assert {each["session_id"] for each in results.values()} == {"t-1"}
    [seen] = map(json.loads, _run("inspect", file, "--format", "json", path=_path(installed)).stdout.splitlines())
    assert seen["dialects"] == ["skylark"]
    assert [(call["name"], call["arguments"]) for call in seen["tool_calls"]] == [("search", {"q": "trains"})]


def test_a_drill_uses_installed_faults_and_skips_invalid_ones_with_a_reason(
    installed: Path, broken: Path, file: Path
) -> None:
    (broken / "broken_pack-0.1.dist-info" / "entry_points.txt").write_text(
        "[pandaeval.faults]\nbad = empty\nworse = broken_metric\ncrash = shouting\n"
    )
    asked = ("drill", file, "--faults", "shouting,empty_answer", "--format", "json")
    done = _run(*asked, path=_path(installed, broken))
    faults = json.loads(done.stdout)["faults"]
    assert sorted(faults) == ["empty_answer", "shouting"]
    assert (faults["shouting"]["n"], faults["shouting"]["text"]) == (1, "The answer is in capitals.")
    for name, why in (
        ("bad", "its module empty holds no FAULT"),
        ("worse", "RuntimeError: no such luck"),
        ("crash", "there is a fault crash already"),
    ):
        assert re.search(rf"pandaeval\.faults: {name} of broken-pack 0\.1 is left out: .*{re.escape(why)}", done.stderr)


def _vague(number: int, body: dict[str, Any]) -> JudgeAnswer:
    """Answer with a choice instead of a number."""
    echo = json.loads(verdict(body))["echo"]
    reply = {"instructed": False, "echo": echo, "reason": "It says to call, but not whom.", "step": "vague"}
    return JudgeAnswer(json.dumps(reply))


def test_an_installed_judged_metric_sends_its_own_question(installed: Path, file: Path) -> None:
    with JudgeServer(_vague) as server:
        output = _run(
            *("evaluate", file, "--format", "json", "--model", "openai/gpt-4o-mini", "--metrics", "next_step"),
            path=_path(installed),
            program=_FORKING,
            TESTS_FORKED_FROM=str(forked.helpers()),
            PANDAEVAL_JUDGE__API_BASE=server.url,
            PANDAEVAL_JUDGE__API_KEY_ENV="JUDGE_KEY",
            JUDGE_KEY="sk-test",
        ).stdout
    [result] = map(json.loads, output.splitlines())
    assert (result["metric"], result["outcome"], result["score"], result["success"]) == (
        *("next_step", "scored", 0.5, True),
    )
    assert (result["reason"], result["metadata"]["step"]) == ("It says to call, but not whom.", "vague")
    assert result["evaluator"]["kind"] == "llm"
    [(_, asked)] = server.requests
    assert question_of(asked).startswith("After reading the answer, does the user know what to do next?\n")


@pytest.mark.slow
def test_a_judged_metric_of_a_module_file_is_scored(installed: Path, tmp_path: Path, file: Path) -> None:
    module = tmp_path / "kindness.py"
    module.write_text(_JUDGED)
    with JudgeServer() as server:
        output = _run(
            *("evaluate", file, "--format", "json", "--model", "openai/gpt-4o-mini", "--metrics", "kindness"),
            path=_path(installed),
            PANDAEVAL_METRICS__MODULES=f"[{module}]",
            PANDAEVAL_JUDGE__API_BASE=server.url,
            PANDAEVAL_JUDGE__API_KEY_ENV="JUDGE_KEY",
            JUDGE_KEY="sk-test",
        ).stdout
    [result] = map(json.loads, output.splitlines())
    assert (result["metric"], result["score"], result["evaluator"]["kind"]) == ("kindness", 0.8, "llm")


@pytest.mark.slow
def test_commands_list_and_validate_installed_plugins(installed: Path, own: Path, tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(f"metrics: {{modules: ['{own}']}}\nexporters: {{alarm: {{below: 2}}}}\n")
    refused = _run("metrics", "--config", config, path=_path(installed), code=2).stderr
    assert refused == f"{config}:2:28 exporters.alarm.below: 2 must be 1 or less\n"
    config.write_text(f"metrics: {{modules: ['{own}']}}\n")
    listed = _run("metrics", "--config", config, path=_path(installed)).stdout
    assert "brevity" in listed
    assert "politeness" in listed
    schema = json.loads(_run("config", "schema", path=_path(installed)).stdout)
    assert schema["$defs"]["Exporters"]["properties"]["alarm"]["$ref"] == "#/$defs/Alarm"
    assert schema["$defs"]["Alarm"]["properties"]["below"]["default"] == 0.5


def test_a_collector_uses_installed_plugins_and_skips_broken_ones(
    installed: Path, broken: Path, own: Path, tmp_path: Path
) -> None:
    alarm = tmp_path / "alarm.txt"
    config = tmp_path / "config.yaml"
    config.write_text(
        f"line: {{workers: 1}}\nmetrics: {{modules: ['{own}'], thresholds: {{trace.bad: 0.5}}}}\n"
        f"exporters: {{bad: {{url: x}}, alarm: {{path: '{alarm}', below: 0.6}}}}\n"
    )
    settings = {"PYTHONPATH": _path(installed, broken)}
    with CollectorProcess(tmp_path / "0", settings, arguments=["--config", str(config)]) as collector:
        collector.start()
        for kind, why in (
            ("metrics", "RuntimeError: no such luck"),
            ("dialects", "ModuleNotFoundError: No module named 'nowhere'"),
            ("exporters", "its module empty holds no exporters"),
        ):
            assert f"pandaeval.{kind}: bad of broken-pack 0.1 is left out: {why}" in collector.log_file.read_text()
        assert "pip uninstall broken-pack" in collector.log_file.read_text()
        with closing(GrpcSender(collector.grpc)) as door:
            assert door.send(_request()).acknowledged
        collector.until(lambda: bool(_of(collector, "agent_reliability")), "scored")
        collector.until(lambda: alarm.exists() and alarm.read_text().count("\n") >= 2, "told of by the exporter")
        assert _of(collector, "brevity")["score"] == pytest.approx(0.5)
        assert _of(collector, "politeness")["reason"] == "1 calls"
        assert f"0.50 trace.brevity {_TRACE:032x}\n" in alarm.read_text()
        assert f"0.25 trace.politeness {_TRACE:032x}\n" in alarm.read_text()
        assert collector.stop() == 0


def test_errors_of_plugins_are_shown_and_do_not_affect_other_results(
    installed: Path, moody: Path, tmp_path: Path
) -> None:
    settings = {"PYTHONPATH": _path(installed, moody), "PANDAEVAL_LINE__WORKERS": "1"}
    with CollectorProcess(tmp_path / "0", settings) as collector:
        collector.start()
        with closing(GrpcSender(collector.grpc)) as door:
            assert door.send(_request()).acknowledged
        collector.until(lambda: bool(_of(collector, "agent_reliability")), "scored")
        collector.until(lambda: ("exporter", "moody") in _raised(collector), "failing to export")
        assert _of(collector, "brevity")["score"] == pytest.approx(0.5), "another dialect must read the same spans"
        assert _of(collector, "tool_loop")["metadata"]["calls"] == 1
        failed = _of(collector, "moody")
        assert (failed["outcome"], failed["why"]) == ("unscored", "metric_error")
        before = _raised(collector)
        assert before.keys() == {("dialect", "moody"), ("metric", "trace.moody"), ("exporter", "moody")}
        assert (before["dialect", "moody"], before["metric", "trace.moody"]) == (2, 1)
        shown = {(each["kind"], each["name"]): each["count"] for each in _overview(collector)["component_errors"]}
        assert shown.keys() == before.keys()
        assert shown["dialect", "moody"] == 2
        with httpx.Client(base_url=f"{collector.http}/api/v1", timeout=120.0) as client:
            run = client.post("/runs", json={"metrics": ["trace.moody"]}).json()["id"]
            collector.until(lambda: client.get(f"/runs/{run}").json()["ended_at"] is not None, "done with the run")
        # The run's process is a child of the reader, which reports errors with its next notice.
        collector.until(lambda: _raised(collector)["dialect", "moody"] == 4, "told what the run raised")
        assert _raised(collector)["metric", "trace.moody"] == 2
        _look(collector, tmp_path / "chromium")
        assert collector.stop() == 0
    log = collector.log_file.read_text()
    for component in ("dialect moody", "metric trace.moody", "exporter moody"):
        assert log.count(f"{component} raised; further errors of it are only counted") == 1
        [_] = re.findall(rf"^ +LookupError: the {component.partition(' ')[0]} is out of order", log, re.MULTILINE)
    assert log.count(_TRACEBACK) == 3


def _look(collector: CollectorProcess, folder: Path) -> None:
    """Check the live page, if Chromium exists."""
    program = chromium()
    if program is None:
        return
    with Page(program, folder) as page:
        for address in ("/", "/#/traces"):
            page.visit(f"{collector.http}{address}")
            assert "dialect moody × 4" in page.text(".raised:not(.outage)")
            assert "metric trace.moody × 2" in page.text(".raised:not(.outage)")


def _raised(collector: CollectorProcess) -> dict[tuple[str, str], int]:
    """Return scraped errors by kind and component."""
    found = collector.series("component_errors_total")
    return {(labels["pandaeval_kind"], labels["pandaeval_component"]): int(value) for labels, value in found}


def _overview(collector: CollectorProcess) -> dict[str, Any]:
    found: dict[str, Any] = httpx.get(f"{collector.http}/api/v1/overview", timeout=120.0).json()
    return found


@pytest.mark.slow  # fast variant: the test above, with a collector
def test_commands_report_errors_of_plugins(installed: Path, moody: Path, file: Path) -> None:
    path = _path(installed, moody)
    warning = r"warning: components raised errors, so their results are missing: dialect moody \d times"
    seen = _run("inspect", file, "--format", "json", path=path, tracebacks=1)
    [trace] = map(json.loads, seen.stdout.splitlines())
    assert trace["dialects"] == ["skylark"]
    assert trace["notes"] == ["dialect moody could not read a span"]
    assert seen.stderr.count("warning:") == 1
    assert "\x1b" not in seen.stderr
    assert re.search(f"^{warning}$", seen.stderr, re.MULTILINE)
    scored = _run("evaluate", file, path=path, tracebacks=2)
    assert re.search(f"^{warning}, metric trace.moody once$", scored.stderr, re.MULTILINE)
    quiet = _run("evaluate", file, "--format", "json", path=path, tracebacks=2)
    assert re.search(f"^{warning}, metric trace.moody once$", quiet.stderr, re.MULTILINE)


@pytest.mark.slow
def test_an_embedder_that_raises_is_reported_and_loses_only_its_results(installed: Path, file: Path) -> None:
    done = _run(
        *("evaluate", file, "--metrics", "coherence,brevity"),
        path=_path(installed),
        tracebacks=1,
        PANDAEVAL_EMBEDDING__MODEL="litellm:openai/nobody",
        OPENAI_API_BASE="http://127.0.0.1:1/v1",
        OPENAI_API_KEY="sk-test",
    )
    assert "components raised errors, so their results are missing: embedder litellm:openai/nobody" in done.stderr
    assert "metric_error 1" in done.stdout
    assert "0.50" in done.stdout


def _of(collector: CollectorProcess, metric: str) -> dict[str, Any]:
    return next((each for each in collector.results() if each["metric"] == metric), {})
