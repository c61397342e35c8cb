"""Real Jaeger v2 with the configuration of ``deploy/jaeger``.

The Go module has placeholder pages. ``pages()`` finds real ones in ``$JAEGER_UI`` or an archive.
"""

from __future__ import annotations

import os
import tarfile
import urllib.error
import urllib.parse
from pathlib import Path
from typing import Any

from support.ports import free_ports
from support.processes import Process, data_at
from support.programs import CACHE

BINARY = CACHE / "jaeger" / "jaeger"
_DEPLOY = Path(__file__).parents[2] / "deploy" / "jaeger"


_ARCHIVE = Path(__file__).parents[3] / "shared" / "programs" / "jaeger-ui-1.76.0.tar.xz"


def pages(folder: Path) -> Path | None:
    """Return the folder of built pages, unpacked into ``folder``, or ``None``."""
    if named := os.environ.get("JAEGER_UI"):
        return Path(named)
    if not _ARCHIVE.exists():
        return None
    with tarfile.open(_ARCHIVE) as archive:
        archive.extractall(folder, filter="data")
    return folder / "build"


class Jaeger(Process):
    """A context manager. ``grpc``: OTLP address; ``url``: query API, and pages from ``shown``."""

    def __init__(self, folder: Path, shown: Path | None = None) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        otlp, http, own = free_ports(3)
        self.grpc, self.url = f"127.0.0.1:{otlp}", f"http://127.0.0.1:{http}"
        text = (_DEPLOY / "config.yaml").read_text()
        for default, port in (("14317", otlp), ("16686", http), ("16685", own)):
            text = text.replace(f"127.0.0.1:{default}", f"127.0.0.1:{port}")
        if shown is not None:
            text = text.replace("ui: {config_file:", f'ui: {{assets_path: "{shown}", config_file:')
        (folder / "config.yaml").write_text(text)
        environ = {"JAEGER_UI_CONFIG": str(_DEPLOY / "ui.json")}
        command = [str(BINARY), "--config", str(folder / "config.yaml")]
        super().__init__(command, folder / "jaeger.log", f"{self.url}/api/services", environ)

    def spans(self, trace_id: str) -> list[dict[str, Any]]:
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
        """Find traces by service and span name, or ``tags``."""
        of_all_times = {"start": "1", "end": str(4 * 10**15), "limit": "1000"}
        by_name = {"operation": operation} if operation else {}
        asked = urllib.parse.urlencode({"service": service} | by_name | of_all_times | named)
        return {trace["traceID"] for trace in self._get(f"/api/traces?{asked}")}

    def _get(self, path: str) -> Any:
        return data_at(f"{self.url}{path}")


def tags(item: dict[str, Any]) -> dict[str, Any]:
    """Return the tags of a span or log."""
    return {pair["key"]: pair["value"] for pair in item.get("tags", item.get("fields", ()))}
