"""Commands that query a hostile trace store."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from support.hostile.query_api import (
    Answer,
    HostileStore,
    Inventing,
    Repeating,
    bomb,
    dripping,
    flood,
    nested,
    whole,
)

_CLI = "from pandaeval_collector.cli import main; main()"
_RSS_BYTES, _MOST_S = 512 << 20, 180.0


def answering(folder: Path, scale: int) -> Iterator[str]:
    """Evaluate each hostile answer, as Jaeger and Tempo."""
    folder.mkdir(parents=True, exist_ok=True)
    for kind in ("jaeger", "tempo"):
        for name, answer in _answers(scale).items():
            with HostileStore(answer) as store:
                code, seconds, rss_bytes, output = _evaluated(
                    folder / "said", f"{kind}://{store.host}?since=1h&limit=100000"
                )
            what = f"{kind}: {name}"
            if code != 2 or "Traceback" in output or not output.strip():
                yield f"{what}: no clear answer, exit code {code}: {output[-300:]}"
            if rss_bytes > _RSS_BYTES:
                yield f"{what}: it took {rss_bytes >> 20} MiB"
            if seconds > _MOST_S:
                yield f"{what}: it took {seconds:.0f} s"


def _answers(scale: int) -> Mapping[str, Answer]:
    layers, blanks, deep = bomb(256 * scale << 20), bomb(256 * scale << 20, layers=1), nested(100_000 * scale)
    found: dict[str, Answer] = {
        "empty objects": _after_services(lambda _: flood(60_000_000 * scale)),
        "layers of gzip": lambda _: whole(layers, "gzip, gzip"),
        "gzip": lambda _: whole(blanks, "gzip"),
        "deep JSON": lambda _: whole(deep),
        "deep traces": _after_services(lambda _: whole(deep)),
        "the same again": Repeating(),
        "others again": Inventing(),
        "a drip": lambda _: dripping(False, 1.0),
        "a drip of a head": lambda _: dripping(True, 1.0),
    }
    return found


def _after_services(answer: Answer) -> Answer:
    return lambda path: whole(b'{"services":["desk"]}') if path.endswith("services") else answer(path)


def _evaluated(file: Path, address: str) -> tuple[int, float, int, str]:
    """Return exit code, seconds, peak memory and output."""
    path = os.pathsep.join(entry for entry in sys.path if entry)
    outside = {key: value for key, value in os.environ.items() if not key.startswith("PANDAEVAL")}
    began = time.monotonic()
    with file.open("wb") as output:
        streams = [(os.POSIX_SPAWN_DUP2, output.fileno(), number) for number in (1, 2)]
        command = [sys.executable, "-c", _CLI, "evaluate", address]
        pid = os.posix_spawn(sys.executable, command, outside | {"PYTHONPATH": path}, file_actions=streams)
    _, status, used = os.wait4(pid, 0)
    seconds = time.monotonic() - began
    return os.waitstatus_to_exitcode(status), seconds, used.ru_maxrss << 10, file.read_text(errors="replace")
