"""Removes the items that make a request invalid OTLP, so that one bad span costs no other."""

from __future__ import annotations

from typing import Any

from google.protobuf.message import DecodeError

from pandaeval_otel.wire.skeleton import Request


def sifted(request: bytes, item: Any) -> tuple[bytes, int, str]:
    """The request without items that are no message of this kind, how many those are, and what is wrong with the first.
    Raises ``DecodeError`` where it is no request at all."""
    outline = Request.FromString(request)
    bad, why = 0, ""
    for resourced in outline.resourced:
        for scoped in resourced.scoped:
            kept = []
            for raw in scoped.items:
                try:
                    item.FromString(raw)
                except DecodeError as error:
                    bad += 1
                    why = why or str(error)
                else:
                    kept.append(raw)
            if len(kept) < len(scoped.items):
                del scoped.items[:]
                scoped.items.extend(kept)
    return bytes(outline.SerializeToString()), bad, why
