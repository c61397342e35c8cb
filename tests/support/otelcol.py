"""The real OpenTelemetry Collector as a sink."""

from __future__ import annotations

import json
import os
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from support.ports import free_ports
from support.processes import Process
from support.programs import CACHE

BINARY = Path(os.environ.get("PANDAEVAL_OTELCOL") or CACHE / "otelcol" / "otelcol-pandaeval")
DEPLOYED = Path(__file__).parents[2] / "deploy" / "otelcol"
_QUIET = "service::telemetry::metrics::level: none"
_FIELDS = {"logs": ("resourceLogs", "scopeLogs", "logRecords"), "traces": ("resourceSpans", "scopeSpans", "spans"),
           "metrics": ("resourceMetrics", "scopeMetrics", "metrics")}  # fmt: skip


class Otelcol:
    """A context manager; call :meth:`start`."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self.grpc_port, self.http_port, self._prometheus_port = free_ports(3)
        (folder / "config.yaml").write_text(self._config())
        self._process = Process([BINARY, "--config", folder / "config.yaml"], folder / "otelcol.log")

    def __enter__(self) -> Otelcol:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.end()

    def start(self) -> None:
        self._process.__enter__()

    def stop(self) -> None:
        """Send SIGTERM and wait."""
        self._process.stop()

    def items(self, signal_name: str) -> Iterator[dict[str, Any]]:
        """Return every written item with ``resource`` and ``scope``."""
        outer, inner, leaf = _FIELDS[signal_name]
        path = self._folder / f"{signal_name}.json"
        text = path.read_text() if path.exists() else ""
        for line in text[: text.rfind("\n") + 1].splitlines():  # the last line may be incomplete
            for resourced in json.loads(line)[outer]:
                for scoped in resourced[inner]:
                    around = {
                        "resource": plain(resourced["resource"]["attributes"]),
                        "scope": scoped["scope"].get("name", ""),
                    }
                    yield from (item | around for item in scoped[leaf])

    def scrape(self) -> str:
        """Return the Prometheus exporter's page."""
        address = f"http://127.0.0.1:{self._prometheus_port}/metrics"
        with urllib.request.urlopen(address, timeout=60) as response:
            return str(response.read().decode())

    def _config(self) -> str:
        files = {
            f"file/{name}": {"path": str(self._folder / f"{name}.json"), "flush_interval": "50ms"} for name in _FIELDS
        }
        prometheus = {"prometheus": {"endpoint": f"127.0.0.1:{self._prometheus_port}"}}
        doors = {"grpc": self.grpc_port, "http": self.http_port}
        protocols = {name: {"endpoint": f"127.0.0.1:{port}"} for name, port in doors.items()}
        pipelines = {name: {"receivers": ["otlp"], "exporters": [f"file/{name}"]} for name in _FIELDS}
        pipelines["metrics"]["exporters"].append("prometheus")
        config = {
            "receivers": {"otlp": {"protocols": protocols}},
            "exporters": {**files, **prometheus},
            "service": {"pipelines": pipelines, "telemetry": {"metrics": {"level": "none"}}},
        }
        return json.dumps(config)  # YAML reads JSON


def plain(attributes: list[dict[str, Any]]) -> dict[str, Any]:
    return {pair["key"]: _value(pair["value"]) for pair in attributes}


def _value(value: dict[str, Any]) -> Any:
    [(kind, held)] = value.items()
    if kind == "arrayValue":
        return [_value(item) for item in held.get("values", [])]
    return int(held) if kind == "intValue" else held


class ConfiguredOtelcol(Process):
    """An OpenTelemetry Collector with a ``deploy/otelcol`` configuration on free ports.

    ``changes``: text replacements.
    """

    def __init__(
        self,
        name: str,
        folder: Path,
        environ: Mapping[str, str],
        changes: Mapping[str, str],
        within: Sequence[str] = (),
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        text = (DEPLOYED / name).read_text()
        self.ports = dict(zip(("4317", "4318", "4319"), free_ports(3), strict=True))
        for old, new in self.ports.items():
            text = text.replace(f'"127.0.0.1:{old}"', f'"127.0.0.1:{new}"')
        for was, becomes in changes.items():
            assert was in text, f"{name} does not contain {was}"
            text = text.replace(was, becomes)
        (folder / name).write_text(text)
        command = [*within, str(BINARY), "--config", str(folder / name), "--config", f"yaml:{_QUIET}"]
        super().__init__(command, folder / f"{name}.log", environ=environ)

    @property
    def grpc(self) -> str:
        """Return the applications' address."""
        return f"127.0.0.1:{self.ports['4317']}"

    @property
    def results(self) -> str:
        """Return PandaEval's address."""
        return f"127.0.0.1:{self.ports['4319']}"
