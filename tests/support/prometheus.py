"""A real Prometheus on loopback."""

from __future__ import annotations

import json
import shutil
import time
import urllib.parse
from pathlib import Path
from typing import Any

from support.ports import free_ports
from support.processes import Process, data_at
from support.programs import CACHE

THREE = CACHE / "prometheus" / "prometheus"
"""Prometheus 3 by ``tests/support/programs.py``, which accepts OTLP."""
BINARY = str(THREE) if THREE.exists() else shutil.which("prometheus")
PROMTOOL = str(THREE.parent / "promtool") if THREE.exists() else shutil.which("promtool")
_CONFIG = """global: {{scrape_interval: {interval}, scrape_timeout: {interval}, evaluation_interval: {interval}}}
scrape_configs: {scraped}
rule_files: {rules}
"""


class Prometheus(Process):
    """A context manager. ``target``: scraped every ``interval``; ``None``: OTLP at ``otlp``. ``rules``: alerts."""

    def __init__(self, folder: Path, target: str | None, interval: str = "1s", rules: Path | None = None) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        [port] = free_ports(1)
        self.url = f"http://127.0.0.1:{port}"
        self.otlp = f"{self.url}/api/v1/otlp"
        scraped = [] if target is None else [{"job_name": "pandaeval", "static_configs": [{"targets": [target]}]}]
        (folder / "prometheus.yml").write_text(
            _CONFIG.format(
                interval=interval, scraped=json.dumps(scraped), rules=json.dumps([] if rules is None else [str(rules)])
            )
        )
        command = [
            str(BINARY),
            f"--config.file={folder / 'prometheus.yml'}",
            f"--storage.tsdb.path={folder / 'tsdb'}",
            f"--web.listen-address=127.0.0.1:{port}",
            "--enable-feature=exemplar-storage",
            "--log.level=warn",
            *(["--web.enable-otlp-receiver"] if target is None else []),
        ]
        super().__init__(command, folder / "prometheus.log", f"{self.url}/-/ready")

    def query(self, expression: str, at: float | None = None) -> list[dict[str, Any]]:
        parameters = {"query": expression} | ({} if at is None else {"time": f"{at:.3f}"})
        found: list[dict[str, Any]] = self._get("query", parameters)["result"]
        return found

    def value(self, expression: str, at: float | None = None) -> float:
        return sum(float(series["value"][1]) for series in self.query(expression, at))

    def samples(self, name: str, window: str = "1h") -> dict[str, list[tuple[float, float]]]:
        return {
            json.dumps(series["metric"], sort_keys=True): [(at, float(value)) for at, value in series["values"]]
            for series in self.query(f"{name}[{window}]")
        }

    def exemplars(self, expression: str) -> list[dict[str, str]]:
        return [each["labels"] for series in self.exemplar_series(expression) for each in series["exemplars"]]

    def exemplar_series(self, expression: str) -> list[dict[str, Any]]:
        """Return series with exemplars of the last hour."""
        now = time.time()
        asked = {"query": expression, "start": f"{now - 3600:.0f}", "end": f"{now + 60:.0f}"}
        return list(self._get("query_exemplars", asked))

    def alerts(self) -> list[dict[str, Any]]:
        """Return the pending and firing alerts."""
        return list(self._get("alerts", {})["alerts"])

    def label_values(self, selector: str, label: str) -> list[str]:
        return list(self._get(f"label/{label}/values", {"match[]": selector}))

    def metadata(self) -> dict[str, dict[str, str]]:
        """Return type, help and unit by scraped metric."""
        return {name: found[0] for name, found in self._get("metadata", {}).items()}

    def _get(self, what: str, parameters: dict[str, str]) -> Any:
        return data_at(f"{self.url}/api/v1/{what}?{urllib.parse.urlencode(parameters)}")
