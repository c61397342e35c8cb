"""The most likely mistakes get a message with cause and fix.

Some tests need litellm or an old Python.
"""

from __future__ import annotations

import importlib.util
import os
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from support import forked
from support.collector import CollectorProcess
from support.ports import free_ports

_ROOT = Path(__file__).parents[2]
_RECORDING = _ROOT / "tests" / "golden" / "captures" / "langgraph_genai" / "good.otlp.jsonl"
_CLI = "import sys; from pandaeval_collector.cli import main; main()"
_APPLICATION = """
import sys
from opentelemetry.sdk.trace import TracerProvider
from pandaeval_otel import PandaEvalSpanProcessor

provider = TracerProvider()
provider.add_span_processor(PandaEvalSpanProcessor(shutdown_timeout=1))
with provider.get_tracer("my.agent").start_as_current_span("invoke_agent a") as span:
    span.set_attribute("gen_ai.operation.name", "invoke_agent")
    span.set_attribute("gen_ai.agent.name", "a")
provider.force_flush(int(sys.argv[1]))
provider.shutdown()
"""
_FLUSH_MS, _IN_VAIN_MS = 60_000, 1000
"""Waiting time of the application, with and without a collector."""
_needs_litellm = pytest.mark.skipif(
    importlib.util.find_spec("litellm") is None, reason='litellm is not installed: pip install . "./collector[judge]"'
)


def _run(*arguments: object, code: str | None = None, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a program or command, forked where possible."""
    dropped = ("PANDAEVAL", "OTEL_", "OPENAI_", "ANTHROPIC_")
    outside = {key: value for key, value in os.environ.items() if not key.startswith(dropped)}
    path = os.pathsep.join(entry for entry in sys.path if entry)
    environ, words = outside | {"PYTHONPATH": path} | variables, [*map(str, arguments)]
    if code is None and forked.is_wanted():
        done = forked.run(words, environ, timeout=240)
    else:
        command = [sys.executable, "-c", code or _CLI, *words]
        done = subprocess.run(
            command, env=environ, capture_output=True, text=True, timeout=240, stdin=subprocess.DEVNULL
        )
    assert "Traceback" not in done.stderr, done.stderr
    return done


def _said(*arguments: object, **variables: str) -> str:
    """Return the output of a command that exits with 2."""
    done = _run(*arguments, **variables)
    assert done.returncode == 2, done.stderr
    return done.stderr


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CollectorProcess]:
    with CollectorProcess(tmp_path_factory.mktemp("collector")) as process:
        yield process.start()


def _wait_for(collector: CollectorProcess, text: str) -> None:
    collector.until(lambda: text in collector.log(), f"said to have met {text!r}")


def test_processor_explains_once_that_no_collector_is_reachable() -> None:
    [port] = free_ports(1)
    stderr = _run(_IN_VAIN_MS, code=_APPLICATION, PANDAEVAL_ENDPOINT=f"127.0.0.1:{port}").stderr
    assert f"the collector at 127.0.0.1:{port} cannot be reached" in stderr
    assert "is it running" in stderr
    assert "PANDAEVAL_ENDPOINT" in stderr
    assert len([line for line in stderr.splitlines() if "cannot be reached" in line]) == 1


class TestWrongPort:
    def test_grpc_to_the_http_port_is_explained(self, collector: CollectorProcess) -> None:
        stderr = _run(_IN_VAIN_MS, code=_APPLICATION, PANDAEVAL_ENDPOINT=f"127.0.0.1:{collector.http_port}").stderr
        assert "is PANDAEVAL_ENDPOINT its gRPC port (4327)?" in stderr
        _wait_for(collector, f"a gRPC client came to 127.0.0.1:{collector.http_port}, which speaks OTLP/HTTP")
        assert "give it the address of server.grpc (port 4327)" in collector.log()

    @pytest.mark.parametrize("path", ["/", "/v1/trace", "/v1/metrics"])
    def test_http_to_an_unknown_path_is_explained(self, collector: CollectorProcess, path: str) -> None:
        request = urllib.request.Request(collector.http + path, b"", {"content-type": "application/x-protobuf"})
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(request, timeout=60)
        assert refused.value.code == 404
        assert "OTLP/HTTP is POST to /v1/traces and /v1/logs here" in refused.value.read().decode()
        _wait_for(collector, f"POST '{path}' was asked for")

    def test_http_to_the_grpc_port_is_explained_in_the_guide(self, collector: CollectorProcess) -> None:
        """HTTP clients report a bad status line."""
        with socket.create_connection(("127.0.0.1", collector.grpc_port), timeout=60) as connection:
            connection.sendall(b"POST /v1/traces HTTP/1.1\r\nhost: localhost\r\ncontent-length: 0\r\n\r\n")
            assert not connection.recv(100).startswith(b"HTTP/1")
        guide = (_ROOT / "docs" / "operate" / "troubleshooting.md").read_text()
        assert "BadStatusLine" in guide


class TestMissingData:
    def test_missing_content_and_session_ids_are_logged_with_advice(self, collector: CollectorProcess) -> None:
        done = _run(_FLUSH_MS, code=_APPLICATION, PANDAEVAL_ENDPOINT=collector.grpc, OTEL_SERVICE_NAME="shop")
        assert done.stderr == ""
        _wait_for(collector, "service 'shop' sends spans without message content")
        assert "set OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT" in collector.log()
        _wait_for(collector, "the traces of service 'shop' have no session ID")
        assert "pandaeval_otel.using_session" in collector.log()
        collector.until(collector.at_rest, "at rest")
        assert {result["why"] for result in collector.results()} >= {"no_content"}


class TestJudge:
    def test_an_unset_variable_of_the_api_key_is_named(self) -> None:
        stderr = _said("collector", PANDAEVAL_JUDGE__MODEL="openai/gpt-4o", PANDAEVAL_JUDGE__API_KEY_ENV="MY_KEY")
        assert "PANDAEVAL_JUDGE__API_KEY_ENV: the environment variable MY_KEY is not set" in stderr

    @_needs_litellm
    @pytest.mark.parametrize(
        ("model", "cure"),
        [
            (
                "openai/gpt-4o-mini",
                "OPENAI_API_KEY is not set; set the API key of the provider in the environment",
            ),
            ("nosuch/model", "write judge.model as provider/model"),
        ],
        ids=["no key", "wrong model name"],
    )
    def test_a_judge_that_cannot_be_called_is_explained(self, model: str, cure: str) -> None:
        done = _run("evaluate", _RECORDING, "--model", model, "--metrics", "trace.confidence")
        assert f"the judge {model} cannot be called" in done.stderr
        assert cure in done.stderr
        assert "judge_failed" in done.stdout

    def test_unknown_embedders_and_metrics_get_suggestions(self) -> None:
        stderr = _said("collector", PANDAEVAL_EMBEDDING__MODEL="multilingul", PANDAEVAL_METRICS__ENABLED="[coherense]")
        assert '"multilingul" is not an embedder; did you mean multilingual?' in stderr
        assert "coherense: unknown metric; did you mean coherence?" in stderr


def test_an_unknown_metric_is_reported_with_its_option_or_key(tmp_path: Path) -> None:
    stderr = _said("evaluate", _RECORDING, "--metrics", "coherense")
    assert stderr == "--metrics: coherense: unknown metric; did you mean coherence?\n"
    path = tmp_path / "config.yaml"
    path.write_text("metrics:\n  enabled: [coherense]\n")
    assert "metrics.enabled[0]: coherense: unknown metric" in _said("evaluate", _RECORDING, "--config", path)


def test_errors_in_a_yaml_config_have_line_and_column(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("close:\n  quiet: 10s\n idle: 3m\n")
    stderr = _said("collector", "--config", path)
    assert f"{path}:3:2: is not valid YAML" in stderr
    path.write_text("close:\n  quit: 10s\n  idle: ten minutes\n")
    stderr = _said("collector", "--config", path)
    assert f"{path}:2:3 close.quit: unknown key; did you mean quiet?" in stderr
    assert f"{path}:3:9 close.idle" in stderr


class TestUnreadableFile:
    def test_a_missing_file_is_reported(self, tmp_path: Path) -> None:
        assert "No such file" in _said("evaluate", tmp_path / "traces.jsonl")

    def test_a_directory_as_input_is_reported_with_advice(self, tmp_path: Path) -> None:
        assert f"is a directory; give files, for instance {tmp_path}/*.jsonl" in _said("inspect", tmp_path)

    def test_a_file_without_traces_is_reported_with_the_expected_format(self, tmp_path: Path) -> None:
        path = tmp_path / "notes.txt"
        path.write_text("hello\n")
        stderr = _said("evaluate", path)
        assert "no traces found. Expected OTLP/JSON lines" in stderr

    def test_an_unreadable_file_changes_only_the_exit_code_for_other_files(self, tmp_path: Path) -> None:
        path = tmp_path / "notes.txt"
        path.write_text("hello\n")
        for command in ("evaluate", "inspect"):
            alone = _run(command, _RECORDING)
            both = _run(command, path, _RECORDING)
            assert (alone.returncode, both.returncode) == (0, 2)
            assert both.stdout == alone.stdout
            assert f"{path}: no traces found" in both.stderr

    def test_a_missing_file_is_reported_before_any_file_is_read(self, tmp_path: Path) -> None:
        done = _run("evaluate", _RECORDING, tmp_path / "traces.jsonl")
        assert (done.returncode, done.stdout) == (2, "")
        assert "No such file" in done.stderr

    def test_a_missing_config_file_is_reported(self, tmp_path: Path) -> None:
        assert f"{tmp_path / 'config.yaml'}: no such file" in _said("collector", "--config", tmp_path / "config.yaml")


def test_a_started_collector_logs_the_address_of_the_page(collector: CollectorProcess) -> None:
    assert f"scores are shown on {collector.http}/\n" in collector.log()


def test_a_port_in_use_is_reported_with_the_setting(collector: CollectorProcess, tmp_path: Path) -> None:
    stderr = _said("collector", **{**collector.settings, "PANDAEVAL_DATA": str(tmp_path / "other")})
    assert "is already in use, perhaps by another collector: stop that one, or set server." in stderr
    assert "PANDAEVAL_SERVER__" in stderr


def test_demo_reports_an_unwritable_keep_path(tmp_path: Path) -> None:
    assert _said("demo", "--keep", tmp_path) == f"--keep {tmp_path}: Is a directory; name a writable file\n"


def test_a_judged_metric_without_a_judge_is_explained() -> None:
    stderr = _said("evaluate", _RECORDING, "--metrics", "coherence,confidence")
    assert stderr == "confidence: a judge must score this; name a model with --model, or set judge.model\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device that is always full is Linux's")
def test_exit_code_is_2_if_the_output_disk_is_full() -> None:
    for form in ("json", "table", "html"):
        assert "No space left on device" in _said("evaluate", _RECORDING, "--format", form, "--output", "/dev/full")


def test_an_input_without_requests_is_reported(tmp_path: Path) -> None:
    empty = tmp_path / "empty.json"
    empty.write_text("[]")
    assert _said("evaluate", empty).startswith(f"{empty}: no traces found")


def test_empty_metrics_baselines_inputs_and_stores_are_reported(tmp_path: Path) -> None:
    empty, words = tmp_path / "empty.jsonl", tmp_path / "words.log"
    empty.write_text("")
    words.write_text("a log of something else\nand more\n")
    assert _said("evaluate", _RECORDING, "--metrics", "").startswith("--metrics names no metric; omit it for all")
    assert _said("evaluate", _RECORDING, "--baseline", empty).startswith(f"{empty}: the file contains no results")
    assert "request 1: neither OTLP/JSON lines nor length-delimited" in _said("inspect", words)
    store = _said("jobs", "retry", PANDAEVAL_DATA=str(tmp_path))
    assert "no store in" in store
    assert "`pandaeval collector` creates it" in store


def test_config_commands_accept_the_file_as_argument_or_option(tmp_path: Path) -> None:
    file = tmp_path / "pandaeval.yaml"
    file.write_text("server: {grpc: {endpoint: 127.0.0.1:4327}}")
    for arguments in (("check", file), ("show", "--config", file)):
        stderr = _said("config", *arguments)
        assert 'server.grpc: {"endpoint": "127.0.0.1:4327"} is not an address; write HOST:PORT, such as' in stderr


def test_an_unwritable_results_file_is_reported_with_its_setting(tmp_path: Path) -> None:
    ports = {f"PANDAEVAL_SERVER__{door}": "127.0.0.1:0" for door in ("GRPC", "HTTP", "HEALTH")}
    here = {"PANDAEVAL_DATA": str(tmp_path / "data"), "PANDAEVAL_EXPORTERS__JSONL__PATH": str(tmp_path)}
    assert (
        _said("collector", **ports, **here) == f"exporters.jsonl.path: {tmp_path} cannot be written: Is a directory\n"
    )
