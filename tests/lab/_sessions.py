"""Sessions of labelled sets in ``../shared/data``, trace by trace."""

from __future__ import annotations

import hashlib
import json
import lzma
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "collector")]

from pandaeval_collector.analysis.rules.grounding.before import MOST_TRACES, EarlierContent, before, pack  # noqa: E402
from pandaeval_lab.replay.files import Request  # noqa: E402
from pandaeval_otel.model import Trace, Trigger  # noqa: E402
from pandaeval_otel.normal.evidence import gather  # noqa: E402
from pandaeval_otel.normal.trace import Closing, build_trace  # noqa: E402
from pandaeval_otel.wire.otlp_json import decode_json, traces_from_json  # noqa: E402
from pandaeval_otel.wire.splitting import split_traces  # noqa: E402

DATA = ROOT.parent / "shared" / "data"
SETS = ("tau2-policy", "tau2-pairs", "tau-bench", "agentrx-tau", "mcp-pairs", "otel-captures")
HALVES = ("even", "odd", "all")
_SESSION = re.compile(r'"gen_ai\.conversation\.id", ?"value": ?\{"stringValue": ?"([^"]+)"')
_TRACE = re.compile(r'"traceId": ?"([0-9a-f]{32})"')
_GOOD = ("task_success", "chosen")


def is_even(name: str) -> bool:
    """Return whether a session is in the development half."""
    return hashlib.sha256(name.encode()).digest()[0] % 2 == 0


def sessions(name: str, half: str, limit: int | None = None) -> Iterator[tuple[str, bool | None, list[Trace]]]:
    """Yield session or trace ID, good label, and traces in order."""
    good = success(name)
    lines: dict[str, list[Request]] = defaultdict(list)
    for session, request in _requests(name, half):
        lines[session].append(request)
    for session in sorted(lines)[:limit]:
        chunks: dict[bytes, list[tuple[bool, bytes]]] = defaultdict(list)
        for request in lines[session]:
            for fragment in split_traces(request.data).fragments:
                chunks[fragment.trace_id].append((fragment.logs, fragment.chunk))
        built = [build_trace(gather(each), Closing(Trigger.FILE)) for each in chunks.values()]
        yield session, good.get(session), sorted((each for each in built if each), key=lambda trace: trace.start_ns)


def requests(name: str, half: str, limit: int | None = None) -> Iterator[Request]:
    """Yield export requests of a half, up to ``limit`` sessions."""
    seen: set[str] = set()
    for session, request in _requests(name, half):
        seen.add(session)
        if limit is None or len(seen) <= limit:
            yield request


def _requests(name: str, half: str) -> Iterator[tuple[str, Request]]:
    with lzma.open(DATA / name / "traces.jsonl.xz", "rt", encoding="utf-8") as file:
        for line in file:
            found = _SESSION.search(line) or _TRACE.search(line)
            if found is not None and half in ("all", "even" if is_even(found[1]) else "odd"):
                yield found[1], Request(False, traces_from_json(decode_json(line.encode())).SerializeToString())


def with_before(traces: list[Trace]) -> Iterator[tuple[Trace, EarlierContent | None]]:
    """Yield each trace with the earlier members."""
    packed: list[bytes] = []
    responses: set[str] = set()
    for trace in traces:
        yield trace, before(packed[-MOST_TRACES:], frozenset(responses)) if trace.session_id else None
        packed.append(pack(trace))
        responses.update(trace.responses)


def success(name: str) -> dict[str, bool]:
    """Return the label by session or trace."""
    found: dict[str, bool] = {}
    with lzma.open(DATA / name / "labels.jsonl.xz", "rt", encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            if row["name"] in _GOOD:
                found[row["session_id"] or row["trace_id"]] = bool(row["value"])
    return found
