"""Recorded sessions of real agents and a judge's verdicts, for ``pandaeval demo``."""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterator, Mapping
from importlib.resources import files
from pathlib import Path

from pandaeval_collector.scoring.registry import registry
from pandaeval_lab.replay.files import Request
from pandaeval_otel.wire.otlp_json import decode_json, logs_from_json, traces_from_json

JUDGED = ("session.correctness", "session.goal_completion", "session.user_friction")
"""Metrics whose verdicts are recorded."""
VERDICTS = "verdicts.json"


def recorded_judge() -> Mapping[str, object]:
    path = Path(__file__).with_name(VERDICTS)
    return {
        "judge.model": f"recorded, {json.loads(path.read_bytes())['day']}",
        "judge.api_base": f"file:{path}",
        "metrics.enabled": [name for name, metric in registry().items() if metric.kind != "llm" or name in JUDGED],
    }


def requests() -> Iterator[Request]:
    packed = files(__name__).joinpath("sessions.otlp.jsonl.xz").read_bytes()
    for document in map(decode_json, filter(None, lzma.decompress(packed).splitlines())):
        logs = "resourceLogs" in document
        decoded = logs_from_json(document) if logs else traces_from_json(document)
        yield Request(logs, decoded.SerializeToString())
