"""TLS, client certificates and tokens in real processes."""

from __future__ import annotations

import asyncio
import json
import logging
import shutil
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import pytest
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HttpExporter
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from pandaeval_collector.app.collector import Collector
from pandaeval_collector.config import load
from pandaeval_collector.receivers.bind import Tls
from pandaeval_otel import wait_for_result
from support.agents import run_agent, scored
from support.certificates import make_certificates
from support.collector import BRISK, CollectorProcess
from support.otlp_sink import Answer, OtlpSink
from support.processors import Recording, processor, provider
from support.receivers import until

TOKEN = "s3cret"
TOKEN_SETTINGS = {"PANDAEVAL_SERVER__TOKEN_ENV": "THE_TOKEN", "THE_TOKEN": TOKEN}


@pytest.fixture(scope="module")
def pki(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return ``good`` and ``other`` authorities."""
    folder = tmp_path_factory.mktemp("pki")
    for name in ("good", "other"):
        make_certificates(folder / name)
    return folder


def serving(folder: Path, *, mutual: bool = False) -> dict[str, str]:
    """Return settings of a TLS collector."""
    files = {"CERT": "server.pem", "KEY": "server.key", **({"CLIENT_CA": "ca.pem"} if mutual else {})}
    return {f"PANDAEVAL_SERVER__TLS__{key}": str(folder / name) for key, name in files.items()}


def trusting(folder: Path) -> dict[str, str]:
    return {"certificate": str(folder / "ca.pem")}


def identified(folder: Path) -> dict[str, str]:
    return {"client_certificate": str(folder / "client.pem"), "client_key": str(folder / "client.key")}


class TestAllReceivers:
    """Collectors with token, and with client certificates."""

    @pytest.fixture(scope="class", params=["token", "mutual"])
    @staticmethod
    def collector(
        request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, pki: Path
    ) -> Iterator[CollectorProcess]:
        settings = {**serving(pki / "good", mutual=request.param == "mutual"), **TOKEN_SETTINGS}
        with CollectorProcess(tmp_path_factory.mktemp("collector"), settings) as running:
            yield running.start()

    @pytest.fixture
    def connection(self, pki: Path) -> dict[str, str]:
        """Return a client's settings."""
        return {**trusting(pki / "good"), **identified(pki / "good"), "token": TOKEN}

    def test_the_processor_sends_traces_and_receives_results(
        self, collector: CollectorProcess, connection: dict[str, Any]
    ) -> None:
        telemetry, endpoint = Recording(), f"https://localhost:{collector.grpc_port}"
        tracing = provider(processor(endpoint, telemetry, **connection))
        trace_id = run_agent(tracing.get_tracer("t"))
        tracing.shutdown()
        assert telemetry["traces", "acknowledged", ""] == 1
        assert telemetry.balance() == telemetry.of("spans", "dropped") == 0
        found = wait_for_result(trace_id, "response", 60, endpoint=endpoint, **connection)
        assert found["trace_id"] == trace_id
        credentials = _credentials(connection)
        with grpc.secure_channel(f"localhost:{collector.grpc_port}", credentials) as channel:
            for service in ("ResultService/WatchResults", "TraceService/SubmitTraces"):
                call = channel.unary_stream(f"/pandaeval.v1.{service}", None, None)
                with pytest.raises(grpc.RpcError) as refused:
                    next(iter(call(b"", metadata=_authorization("wrong"), timeout=120)))
                assert refused.value.code() is grpc.StatusCode.UNAUTHENTICATED
                assert "authorization: Bearer" in refused.value.details()

    @pytest.mark.parametrize("protocol", ["grpc", "http"])
    def test_otlp_exporters_send_traces(
        self,
        collector: CollectorProcess,
        connection: dict[str, Any],
        protocol: str,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        for variable in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):  # if set, requests ignores other settings
            monkeypatch.delenv(variable, raising=False)
        headers = {"authorization": f"Bearer {TOKEN}"}
        exporter: Any
        if protocol == "grpc":
            exporter = GrpcExporter(
                f"https://localhost:{collector.grpc_port}", credentials=_credentials(connection), headers=headers
            )
        else:
            exporter = HttpExporter(
                f"https://localhost:{collector.http_port}/v1/traces",
                certificate_file=connection["certificate"],
                client_certificate_file=connection["client_certificate"],
                client_key_file=connection["client_key"],
                headers=headers,
            )
        tracing = provider(BatchSpanProcessor(exporter))
        trace_id = run_agent(tracing.get_tracer("t"))
        tracing.shutdown()
        collector.until(lambda: trace_id in scored(collector.results()), "done with the trace")

    def test_health_needs_no_tls_and_shows_no_content(
        self, collector: CollectorProcess, connection: dict[str, Any]
    ) -> None:
        tracing = provider(processor(f"https://localhost:{collector.grpc_port}", Recording(), **connection))
        trace_id = run_agent(tracing.get_tracer("t"), 3)
        tracing.shutdown()
        collector.until(lambda: trace_id in scored(collector.results()), "done with the trace")
        assert collector.ready()
        for path in ("healthz", "readyz", "metrics"):
            with urllib.request.urlopen(f"http://127.0.0.1:{collector.health_port}/{path}", timeout=120) as response:
                assert response.status == 200
                shown = response.read().decode()
            assert "helper" in shown or path != "metrics", "the agent's scores must be shown"
            assert not [text for text in ("Oslo", "parcel", "Rome", TOKEN) if text in shown], path

    def test_plain_http_is_rejected_and_the_log_does_not_contain_the_token(self, collector: CollectorProcess) -> None:
        with pytest.raises((urllib.error.URLError, OSError)):
            urllib.request.urlopen(f"{collector.http}/v1/traces", b"", timeout=120)
        assert TOKEN not in collector.log()


@dataclass
class Mistake:
    """A setup error, its message and its fix."""

    says: str
    server: Callable[[Path], dict[str, str]]
    client: Callable[[Path], dict[str, str]]
    mended: Callable[[Path], dict[str, str]] | None = None
    """Settings of the next collector; ``None``: the client's files are replaced."""
    scheme: str = "https://"
    extra: dict[str, str] = field(default_factory=dict)


def _mine(pki: Path) -> Path:
    return pki / "mine"


SLOW_MISTAKES = (
    *("no client certificate", "a client certificate of another authority"),
    *("TLS to one in the clear", "in the clear to TLS"),
)
"""Variants for slow tests."""
MISTAKES = {
    "an unknown authority": Mistake(
        "PANDAEVAL_CERTIFICATE", lambda pki: serving(pki / "good"), lambda pki: trusting(_mine(pki))
    ),
    "no client certificate": Mistake(
        "PANDAEVAL_CLIENT_CERTIFICATE",
        lambda pki: serving(pki / "good", mutual=True),
        lambda pki: trusting(pki / "good"),
        lambda pki: serving(pki / "good"),
    ),
    "a client certificate of another authority": Mistake(
        "client certificate",
        lambda pki: serving(pki / "good", mutual=True),
        lambda pki: {**trusting(pki / "good"), **identified(_mine(pki))},
    ),
    "a wrong token": Mistake(
        "PANDAEVAL_TOKEN",
        lambda pki: {**serving(pki / "good"), **TOKEN_SETTINGS},
        lambda pki: {**trusting(pki / "good"), "token": "new"},
        lambda pki: {**serving(pki / "good"), **TOKEN_SETTINGS, "THE_TOKEN": "new"},
    ),
    "in the clear to TLS": Mistake(
        "https://", lambda pki: serving(pki / "good"), lambda pki: {}, lambda pki: {}, scheme="http://"
    ),
    "TLS to one in the clear": Mistake(
        "server.tls", lambda pki: {}, lambda pki: trusting(pki / "good"), lambda pki: serving(pki / "good")
    ),
}


@pytest.mark.parametrize(
    "mistake",
    [
        pytest.param(each, id=name, marks=pytest.mark.slow if name in SLOW_MISTAKES else ())
        for name, each in MISTAKES.items()
    ],
)
def test_a_tls_mistake_is_logged_once_and_loses_no_trace(
    mistake: Mistake, tmp_path: Path, pki: Path, caplog: pytest.LogCaptureFixture
) -> None:
    shutil.copytree(pki / "other", _mine(pki), dirs_exist_ok=True)
    telemetry = Recording()
    with CollectorProcess(tmp_path / "before", mistake.server(pki)) as wrong:
        wrong.start()
        endpoint = f"{mistake.scheme}localhost:{wrong.grpc_port}"
        tracing = provider(processor(endpoint, telemetry, shutdown_timeout=60.0, **mistake.client(pki)))
        with caplog.at_level(logging.WARNING, "pandaeval_otel"):
            sent = [run_agent(tracing.get_tracer("t"), seed) for seed in range(3)]
            wrong.until(lambda: bool(_warnings(caplog)), "named")
            assert not tracing.force_flush(1500)
        [warning] = _warnings(caplog)
        assert mistake.says in warning
        assert endpoint in warning
        assert not wrong.results()
        assert telemetry.of("traces", "acknowledged") == telemetry.of("traces", "dropped") == 0
        if mistake.mended is None:
            shutil.copytree(pki / "good", _mine(pki), dirs_exist_ok=True)
        else:
            wrong.stop()
            for name in (*wrong.settings,):
                if name.startswith("PANDAEVAL_SERVER__T"):
                    del wrong.settings[name]
            wrong.settings |= mistake.mended(pki)
            wrong.start()
        tracing.shutdown()
        assert telemetry.of("traces", "acknowledged") == len(sent)
        assert telemetry.balance() == telemetry.of("traces", "dropped") == 0
        wrong.until(lambda: {*sent} <= scored(wrong.results()), "done with what it took")


def _warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


def _exporting(folder: Path, pki: Path, port: int, protocol: str) -> dict[str, str]:
    """Return settings for a TLS sink, with certificates in ``folder``."""
    otlp = {
        "ENDPOINT": f"localhost:{port}",
        "PROTOCOL": protocol,
        "INSECURE": "false",
        "CERTIFICATE": str(folder / "ca.pem"),
        "CLIENT_CERTIFICATE": str(folder / "client.pem"),
        "CLIENT_KEY": str(folder / "client.key"),
        "HEADERS_ENV": "SINK_HEADERS",
        "METRICS__ENABLED": "false",
    }
    headers = {"SINK_HEADERS": f"authorization=Bearer%20{TOKEN}"}
    return {**{f"PANDAEVAL_EXPORTERS__OTLP__{key}": value for key, value in otlp.items()}, **headers}


SINK_MISTAKES = {
    "none": (),
    "an unknown authority": ("ca.pem",),
    "a certificate of another authority": ("client.pem", "client.key"),
    "a wrong token": (),
}


FAST = (("none", "grpc"), ("none", "http/protobuf"), ("an unknown authority", "grpc"))


@pytest.mark.parametrize(
    ("mistake", "protocol"),
    [
        pytest.param(mistake, protocol, marks=() if (mistake, protocol) in FAST else pytest.mark.slow)
        for mistake in SINK_MISTAKES
        for protocol in ("grpc", "http/protobuf")
    ],
)
async def test_all_results_reach_a_tls_sink_also_after_a_mistake_is_fixed(
    mistake: str, protocol: str, tmp_path: Path, pki: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Results wait until the mistake is fixed."""
    mine = tmp_path / "mine"
    shutil.copytree(pki / "good", mine)
    for name in SINK_MISTAKES[mistake]:
        shutil.copyfile(pki / "other" / name, mine / name)
    sink = OtlpSink()
    good = pki / "good"
    ports = await sink.listen(
        tls=Tls(cert=str(good / "server.pem"), key=str(good / "server.key"), client_ca=str(good / "ca.pem"))
    )
    if mistake == "a wrong token":
        sink.always = dict.fromkeys(("logs", "traces"), Answer(grpc.StatusCode.UNAUTHENTICATED, 401, "who are you"))
    settings = _exporting(mine, pki, ports[protocol != "grpc"], protocol)
    collector = Collector(load(None, {**settings, **_here(tmp_path)}), settings)
    listening = await collector.start()
    try:
        tracing = provider(processor(str(listening.grpc), Recording(), shutdown_timeout=60.0))
        sent = {run_agent(tracing.get_tracer("t"), seed) for seed in range(3)}
        await asyncio.to_thread(tracing.shutdown)
        await until(lambda: collector.at_rest and sent <= scored(_results(tmp_path)))
        if mistake != "none":
            await until(lambda: bool(_worried(caplog)))
            assert not sink.requests["logs"]
            shutil.copytree(pki / "good", mine, dirs_exist_ok=True)
            sink.always = {}
        await until(lambda: len(sink.evaluations("logs")) == len(_results(tmp_path)))
        warnings = _worried(caplog)
    finally:
        await collector.stop()
        await sink.hang_up()
    assert len(warnings) == (mistake != "none")
    cures = {"an unknown authority": "otlp.certificate", "a wrong token": "headers_env"}
    assert all(cures.get(mistake, "client_certificate") in line for line in warnings), warnings
    assert {each["authorization"] for each in sink.headers} == {f"Bearer {TOKEN}"}
    arrived = [each["pandaeval.result.id"] for each in sink.evaluations("logs")]
    assert sorted(arrived) == sorted(each["id"] for each in _results(tmp_path))


def _here(folder: Path) -> dict[str, str]:
    """Return settings of a collector in this process."""
    return {
        **{f"PANDAEVAL_SERVER__{door}": "127.0.0.1:0" for door in ("GRPC", "HTTP", "HEALTH")},
        **BRISK,
        "PANDAEVAL_DATA": str(folder / "data"),
        "PANDAEVAL_EXPORTERS__JSONL__PATH": str(folder / "results.jsonl"),
    }


def _results(folder: Path) -> list[dict[str, Any]]:
    path = folder / "results.jsonl"
    text = path.read_bytes() if path.exists() else b""
    return [json.loads(line) for line in text[: text.rfind(b"\n") + 1].splitlines()]


def _worried(caplog: pytest.LogCaptureFixture) -> list[str]:
    warnings = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    return [line for line in warnings if "otlp.logs" in line]


class TestSettings:
    def test_a_missing_certificate_file_is_an_error(self, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        with pytest.raises(ValueError, match=r"certificate: .*nowhere\.pem.* cannot be read"):
            processor("https://localhost:1", Recording(), certificate=str(tmp_path / "nowhere.pem"))

    def test_a_client_key_without_certificate_is_logged(self, pki: Path, caplog: pytest.LogCaptureFixture) -> None:
        made = processor("https://localhost:1", Recording(), client_key=str(pki / "good" / "client.key"))
        assert "go together" in caplog.text
        made.shutdown()

    def test_a_certificate_without_https_is_logged(self, pki: Path, caplog: pytest.LogCaptureFixture) -> None:
        made = processor("localhost:1", Recording(), **trusting(pki / "good"))
        assert "write https://" in caplog.text
        made.shutdown()


class TestBind:
    """Public addresses need authentication or an explicit setting."""

    def run(self, folder: Path, settings: Mapping[str, str]) -> CollectorProcess:
        collector = CollectorProcess(folder, settings)
        collector.settings["PANDAEVAL_SERVER__GRPC"] = f"0.0.0.0:{collector.grpc_port}"
        return collector

    @pytest.mark.parametrize("tls", [False, True])
    def test_a_public_address_without_authentication_is_refused(self, tmp_path: Path, pki: Path, tls: bool) -> None:
        with self.run(tmp_path, serving(pki / "good") if tls else {}) as collector:
            collector.launch()
            assert collector.wait(60) == 2
            log = collector.log()
        for cure in ("server.token_env", "insecure_bind", "127.0.0.1", *(() if tls else ("server.tls",))):
            assert cure in log
        assert ("set server.tls" in log) is not tls

    @pytest.mark.parametrize("how", ["insecure_bind", "token", "mutual"])
    async def test_a_public_address_is_allowed_with_authentication_or_insecure_bind(
        self, tmp_path: Path, pki: Path, how: str
    ) -> None:
        settings = {
            "insecure_bind": {"PANDAEVAL_SERVER__INSECURE_BIND": "true"},
            "token": {**serving(pki / "good"), **TOKEN_SETTINGS},
            "mutual": serving(pki / "good", mutual=True),
        }[how]
        open_to_all = _here(tmp_path) | {"PANDAEVAL_SERVER__GRPC": "0.0.0.0:0"}
        collector = Collector(load(None, open_to_all | settings), settings)
        listening = await collector.start()
        await collector.stop()
        assert listening.grpc.host == "0.0.0.0"

    def test_start_fails_if_the_key_does_not_match_the_certificate(self, tmp_path: Path, pki: Path) -> None:
        settings = serving(pki / "good") | {"PANDAEVAL_SERVER__TLS__KEY": str(pki / "other" / "server.key")}
        with CollectorProcess(tmp_path, settings) as collector:
            collector.launch()
            assert collector.wait(60) == 2
            assert "server.tls" in collector.log()

    def test_start_fails_if_the_token_variable_is_not_set(self, tmp_path: Path) -> None:
        with CollectorProcess(tmp_path, {"PANDAEVAL_SERVER__TOKEN_ENV": "NO_SUCH_VARIABLE"}) as collector:
            collector.launch()
            assert collector.wait(60) == 2
            assert "NO_SUCH_VARIABLE" in collector.log()


def _credentials(connection: Mapping[str, str]) -> grpc.ChannelCredentials:
    names = ("certificate", "client_key", "client_certificate")
    return grpc.ssl_channel_credentials(*(Path(connection[name]).read_bytes() for name in names))


def _authorization(token: str) -> tuple[tuple[str, str], ...]:
    return (("authorization", f"Bearer {token}"),)
