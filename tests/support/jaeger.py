"""The real Jaeger v2 with the configuration of ``deploy/jaeger``, asked through its query API."""

from __future__ import annotations

import urllib.error
import urllib.parse
from pathlib import Path
from typing import Any

from support.collector import free_ports
from support.processes import Process, data_at
from support.programs import CACHE

BINARY = CACHE / "jaeger" / "jaeger"
_DEPLOY = Path(__file__).parents[2] / "deploy" / "jaeger"


class Jaeger(Process):
    """A context manager: at its end no process is left. ``grpc``: where it takes OTLP; ``url``: its query API."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        otlp, http, own = free_ports(3)
        self.grpc, self.url = f"127.0.0.1:{otlp}", f"http://127.0.0.1:{http}"
        text = (_DEPLOY / "config.yaml").read_text()
        for default, port in (("14317", otlp), ("16686", http), ("16685", own)):
            text = text.replace(f"127.0.0.1:{default}", f"127.0.0.1:{port}")
        (folder / "config.yaml").write_text(text)
        environ = {"JAEGER_UI_CONFIG": str(_DEPLOY / "ui.json")}
        command = [str(BINARY), "--config", str(folder / "config.yaml")]
        super().__init__(command, folder / "jaeger.log", f"{self.url}/api/services", environ)

    def spans(self, trace_id: str) -> list[dict[str, Any]]:
        """The spans of a trace as ``/api/traces`` has them; none for a trace that it does not know."""
        try:
            found = self._get(f"/api/traces/{trace_id}")
        except urllib.error.HTTPError as error:
            if error.code != 404:
                raise
            return []
        return [span for trace in found for span in trace["spans"]]

    def services(self) -> list[str]:
        return list(self._get("/api/services") or ())

    def trace_ids(self, service: str, operation: str = "", **named: str) -> set[str]:
        """Traces that it finds by service and span name, or by ``tags``."""
        of_all_times = {"start": "1", "end": str(4 * 10**15), "limit": "1000"}
        by_name = {"operation": operation} if operation else {}
        asked = urllib.parse.urlencode({"service": service} | by_name | of_all_times | named)
        return {trace["traceID"] for trace in self._get(f"/api/traces?{asked}")}

    def _get(self, path: str) -> Any:
        return data_at(f"{self.url}{path}")


def tags(item: dict[str, Any]) -> dict[str, Any]:
    """The tags of a span, or the fields of one of its logs, as values."""
    return {pair["key"]: pair["value"] for pair in item.get("tags", item.get("fields", ()))}
