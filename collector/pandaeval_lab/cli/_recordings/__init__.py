"""Recorded sessions of real agents and a judge's verdicts, for ``pandaeval demo``."""

from __future__ import annotations

import json
import lzma
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from pathlib import Path

from pandaeval_collector.scoring.registry import registry
from pandaeval_lab.replay.files import Request
from pandaeval_otel.wire.otlp_json import decode_json, logs_from_json, traces_from_json

JUDGED = ("session.correctness", "session.goal_completion", "session.user_friction")
"""Metrics whose verdicts are recorded."""
VERDICTS = "verdicts.json"
_TIME = re.compile(rb'("\w*[tT]imeUnixNano": ?"?)(\d{16,20})')
_SPREAD_NS, _APART_NS = 50 * 60 * 10**9, 2 * 10**9
"""The time over which sessions are spread, and the pause between two sessions in the recording."""


def recorded_judge() -> Mapping[str, object]:
    path = Path(__file__).with_name(VERDICTS)
    return {
        "judge.model": f"recorded, {json.loads(path.read_bytes())['day']}",
        "judge.api_base": f"file:{path}",
        "metrics.enabled": [name for name, metric in registry().items() if metric.kind != "llm" or name in JUDGED],
    }


def requests() -> Iterator[Request]:
    """Yield the recorded requests, as if the sessions had taken place within the last hour."""
    packed = files(__name__).joinpath("sessions.otlp.jsonl.xz").read_bytes()
    for document in map(decode_json, _recent([*filter(None, lzma.decompress(packed).splitlines())], time.time_ns())):
        logs = "resourceLogs" in document
        decoded = logs_from_json(document) if logs else traces_from_json(document)
        yield Request(logs, decoded.SerializeToString())


def _recent(lines: Sequence[bytes], now_ns: int) -> Iterator[bytes]:
    """Shift times; requests of a session keep their distance."""
    begins = [min(int(found[2]) for found in _TIME.finditer(line)) for line in lines]
    first: dict[int, int] = {}
    """The beginning of the session by the beginning of a request."""
    session = last = 0
    for begin in sorted({*begins}):
        session = begin if begin - last > _APART_NS else session
        first[begin], last = session, begin
    sessions = sorted({*first.values()})
    for line, begin in zip(lines, begins, strict=True):
        place = sessions.index(first[begin]) / len(sessions)
        yield _shifted(line, now_ns - round(_SPREAD_NS * (1.0 - place)) - first[begin])


def _shifted(line: bytes, shift_ns: int) -> bytes:
    return _TIME.sub(lambda found: found[1] + str(int(found[2]) + shift_ns).encode(), line)
