"""``pandaeval api``: what the collector's HTTP API offers, for programs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pandaeval_collector.cli._terminal import write_json
from pandaeval_collector.show.api.app import api_app
from pandaeval_collector.show.api.read_threads import Reads
from pandaeval_collector.show.api.work import Work
from pandaeval_collector.store.finding import Finder


def api() -> None:
    """Print the OpenAPI document of the collector's HTTP API."""
    write_json(json.dumps(document(), indent=2, ensure_ascii=False))


def document() -> dict[str, Any]:
    """Returns the OpenAPI document."""
    reads = Reads(Finder(Path()))
    try:
        return api_app(reads, Work(), "1").openapi()
    finally:
        reads.close()
