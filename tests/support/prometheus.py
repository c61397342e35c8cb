"""A real Prometheus that scrapes one target, as a process of its own on the loopback."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
import urllib.parse
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Any

from support.collector import free_ports

BINARY = shutil.which("prometheus")
_CONFIG = """\
global: {{scrape_interval: {interval}, scrape_timeout: {interval}}}
scrape_configs:
  - job_name: pandaeval
    static_configs: [{{targets: ["{target}"]}}]
"""


class Prometheus:
    """A context manager: at its end no process is left. ``interval``: time between scrapes, as Prometheus writes it."""

    def __init__(self, folder: Path, target: str, interval: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        [self._port] = free_ports(1)
        (folder / "prometheus.yml").write_text(_CONFIG.format(interval=interval, target=target))
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Prometheus:
        assert BINARY is not None
        with (self._folder / "prometheus.log").open("wb") as log:
            self._process = subprocess.Popen(
                [
                    BINARY,
                    f"--config.file={self._folder / 'prometheus.yml'}",
                    f"--storage.tsdb.path={self._folder / 'tsdb'}",
                    f"--web.listen-address=127.0.0.1:{self._port}",
                    "--enable-feature=exemplar-storage",
                    "--log.level=warn",
                ],
                stdout=log,
                stderr=log,
            )
        deadline = time.monotonic() + 30
        while not self._is_ready():
            assert self._process.poll() is None, (self._folder / "prometheus.log").read_text()
            assert time.monotonic() < deadline, "Prometheus does not become ready"
            time.sleep(0.1)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def query(self, expression: str, at: float | None = None) -> list[dict[str, Any]]:
        """The result of an instant query, at a moment if given (Unix seconds)."""
        parameters = {"query": expression} | ({} if at is None else {"time": f"{at:.3f}"})
        found: list[dict[str, Any]] = self._get("query", parameters)["result"]
        return found

    def value(self, expression: str, at: float | None = None) -> float:
        """The value of a query that has one; 0 when it has none."""
        return sum(float(series["value"][1]) for series in self.query(expression, at))

    def samples(self, name: str, window: str = "1h") -> dict[str, list[tuple[float, float]]]:
        """Every sample of every series of a metric: (Unix seconds, value)."""
        return {
            json.dumps(series["metric"], sort_keys=True): [(at, float(value)) for at, value in series["values"]]
            for series in self.query(f"{name}[{window}]")
        }

    def exemplars(self, name: str) -> list[dict[str, str]]:
        """The labels of all exemplars of a metric."""
        now = time.time()
        found = self._get("query_exemplars", {"query": name, "start": f"{now - 3600:.0f}", "end": f"{now + 60:.0f}"})
        return [exemplar["labels"] for series in found for exemplar in series["exemplars"]]

    def _get(self, what: str, parameters: dict[str, str]) -> Any:
        address = f"http://127.0.0.1:{self._port}/api/v1/{what}?{urllib.parse.urlencode(parameters)}"
        with urllib.request.urlopen(address, timeout=10) as response:
            return json.load(response)["data"]

    def _is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._port}/-/ready", timeout=5) as response:
                return bool(response.status == 200)
        except OSError:
            return False
