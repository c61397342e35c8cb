"""Collectors that share a Kafka topic, with their input and output."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from support.collector import CollectorProcess, unit_of
from support.kafka import Broker
from support.made_traces import MadeTrace

QUICK = {
    "PANDAEVAL_CLOSE__QUIET": "2s",
    "PANDAEVAL_CLOSE__IDLE": "5s",
    "PANDAEVAL_SESSION__IDLE": "8s",
}
"""Longer than pauses of brokers and groups on a busy machine."""
SESSION_TIMEOUT = "PANDAEVAL_KAFKA__OPTIONS__SESSION__TIMEOUT__MS"
INSTANCE = "PANDAEVAL_KAFKA__OPTIONS__GROUP__INSTANCE__ID"


def worker(
    folder: Path, broker: Broker, name: str, spans: str, scores: str, settings: Mapping[str, str] | None = None
) -> CollectorProcess:
    """Return a collector from topic ``spans`` to topic ``scores``, not started."""
    return CollectorProcess(
        folder / name,
        {
            "PANDAEVAL_KAFKA__BROKERS": broker.address,
            "PANDAEVAL_KAFKA__TOPIC": spans,
            "PANDAEVAL_KAFKA__GROUP": f"readers-of-{spans}",
            SESSION_TIMEOUT: "'6000'",
            "PANDAEVAL_EXPORTERS__KAFKA__TOPIC": scores,
            **QUICK,
            **(settings or {}),
        },
    )


def sharing_sessions(spans: str) -> dict[str, str]:
    return {"PANDAEVAL_KAFKA__SESSIONS": "topic", "PANDAEVAL_KAFKA__SESSIONS_TOPIC": f"{spans}.members"}


def newest(results: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str], tuple[Any, ...]]:
    """Return the newest final result per unit and metric."""
    found: dict[tuple[str, str], Mapping[str, Any]] = {}
    for each in sorted(results, key=lambda each: each["time"]):
        if each["final"]:
            found[unit_of(each), f"{each['level']}.{each['metric']}"] = each
    stands = {key: each for key, each in found.items() if not each["metadata"].get("taken_back")}
    return {key: (each["id"], each["score"], each["outcome"], each["session_id"]) for key, each in stands.items()}


def messages(traces: Iterable[MadeTrace], parts: int = 1) -> Iterator[tuple[bytes, bytes]]:
    """Return messages as OpenTelemetry Collectors write them, each trace in ``parts``."""
    made = list(traces)
    for part in range(parts):
        for trace in made:
            if spans := trace.spans[part::parts]:
                yield trace.trace_id.hex().encode(), trace.request(spans).SerializeToString()


def scores(broker: Broker, topic: str, since: dict[int, int] | None = None) -> list[dict[str, Any]]:
    """Return a topic's results ``since`` offsets, and check their keys."""
    found = []
    for message in broker.everything(topic, since):
        result = json.loads(message.value() or b"")
        assert message.key() == result["id"].encode()
        found.append(result)
    return found


def by_id(results: Iterable[Mapping[str, Any]]) -> dict[str, tuple[Any, ...]]:
    """Return results by ID. Raises ``AssertionError`` for contradictions."""
    found: dict[str, set[tuple[Any, ...]]] = defaultdict(set)
    for each in results:
        found[each["id"]].add((unit_of(each), f"{each['level']}.{each['metric']}", each["score"], each["outcome"]))
    assert all(len(variants) == 1 for variants in found.values()), "two results of one id differ"
    return {id_: variants.pop() for id_, variants in found.items()}
