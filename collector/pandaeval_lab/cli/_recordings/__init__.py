"""Recorded sessions of real agents, good and bad, for ``pandaeval demo``."""

from __future__ import annotations

import lzma
from collections.abc import Iterator
from importlib.resources import files

from pandaeval_otel.wire.otlp_json import decode_json


def recorded() -> Iterator[dict[str, object]]:
    """Yields the OTLP/JSON requests of the recording, in order of arrival."""
    packed = files(__name__).joinpath("sessions.otlp.jsonl.xz").read_bytes()
    for line in lzma.decompress(packed).splitlines():
        if line:
            yield decode_json(line)
