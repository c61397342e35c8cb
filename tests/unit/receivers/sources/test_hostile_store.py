"""Hostile trace stores cause a clear, bounded error."""

from __future__ import annotations

import gzip
import tracemalloc
from collections.abc import Iterator

import pytest

from pandaeval_lab.replay import sources
from pandaeval_lab.replay.files import BadLine, UnusableInputError
from pandaeval_lab.replay.sources import TraceSource, client, jaeger as asks_jaeger, tempo as asks_tempo
from pandaeval_otel.wire.otlp_json import decode_json
from support.hostile.query_api import (
    Answer,
    HostileStore,
    Inventing,
    Repeating,
    bomb,
    dripping,
    empty_objects,
    nested,
    whole,
)

ALL = "since=1h"
KINDS = pytest.mark.parametrize("kind", ["jaeger", "tempo"])


def _told(kind: str, answer: Answer, more: str = "") -> str:
    with HostileStore(answer) as store, pytest.raises(UnusableInputError) as raised:
        list(TraceSource(f"{kind}://{store.host}?{ALL}{more}").requests())
    assert "\n" not in str(raised.value)
    return str(raised.value)


@KINDS
@pytest.mark.parametrize("single", [True, False])
def test_an_answer_that_would_take_much_memory_is_not_parsed(
    kind: str, single: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "_MOST_PARSED", 64 << 20)
    size = 1 << 20

    def answer(path: str) -> Iterator[bytes]:
        return whole(b'{"services":["desk"]}' if path.endswith("services") else empty_objects(size))

    parsed: list[int] = []
    monkeypatch.setattr(client, "decode_json", lambda body: parsed.append(len(body)) or decode_json(body))
    assert "too large" in _told(kind, answer, f"&trace={'ab' * 16}" if single else "")
    assert max(parsed, default=0) < 100


@KINDS
@pytest.mark.parametrize("encoding", ["gzip, gzip", "gzip,gzip", "br", "compress"])
def test_encodings_that_were_not_requested_are_rejected(kind: str, encoding: str) -> None:
    assert "is none of identity, gzip" in _told(kind, lambda _: whole(bomb(1 << 20), encoding))


@KINDS
def test_a_compression_bomb_is_not_unpacked(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "MOST_BYTES", 1 << 18)
    packed = gzip.compress(bytes(8 << 20))

    def answer(path: str) -> Iterator[bytes]:
        return whole(b'{"services":["desk"]}') if path.endswith("services") else whole(packed, "gzip")

    tracemalloc.start()
    try:
        assert "too large" in _told(kind, answer, f"&trace={'ab' * 16}")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4 << 20


@KINDS
@pytest.mark.parametrize(
    "body",
    [gzip.compress(b"{}", mtime=0)[:-3], b"none", gzip.compress(b"", mtime=0) * 2000],
    ids=["cut", "none", "many"],
)
def test_a_damaged_compressed_body_is_reported(kind: str, body: bytes) -> None:
    assert "cannot be read" in _told(kind, lambda _: whole(body, "gzip"))


@KINDS
@pytest.mark.parametrize("answer", [Repeating(5), Inventing(5)])
def test_a_search_ends_if_the_store_ignores_the_requested_time(
    kind: str, answer: Answer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asks_jaeger, "_PAGE", 5)
    monkeypatch.setattr(asks_tempo, "_PAGE", 5)
    monkeypatch.setattr(sources, "_MOST_IN_VAIN", 10)
    message = _told(kind, answer, "&limit=100000")
    assert "ignores the requested time" in message or "no traces" in message or "it knows no service" in message


@KINDS
@pytest.mark.parametrize("head", [True, False])
def test_an_answer_that_drips_bytes_ends_at_the_deadline(
    kind: str, head: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "_DEADLINE_S", 0.3)
    assert "took more than 0.3 s" in _told(kind, lambda _: dripping(head, 0.02))


@KINDS
@pytest.mark.parametrize("depth", [65, 100_000])
def test_deeply_nested_json_gives_an_error_of_one_line(kind: str, depth: int) -> None:
    assert _told(kind, lambda _: whole(nested(depth)))
    listed = lambda path: whole(b'{"services":["desk"]}' if path.endswith("services") else nested(depth))  # noqa: E731
    assert _told(kind, listed)
    assert "JSON" in _told(kind, listed, f"&trace={'ab' * 16}")


@KINDS
@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b'{"services":5,"data":5,"traces":5}', "does not have the format of {}: TypeError"),
        (
            b'{"services":["desk"],"traces":[5],"result":{"resourceSpans":[5]}}',
            "does not have the format of {}: AttributeError",
        ),
        (b'{"services":["desk"],"traces":[{"traceID":"ab","startTimeUnixNano":1e999}]}', "its answer is not JSON"),
    ],
)
def test_an_answer_of_another_shape_is_reported(kind: str, body: bytes, why: str) -> None:
    assert why.format(kind.capitalize()) in _told(kind, lambda _: whole(body))


@KINDS
def test_a_trace_id_of_another_type_is_a_bad_line(kind: str) -> None:
    spans = b'"result":{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":[]}]}]}]}'
    with HostileStore(lambda _: whole(b'{"services":["desk"],"traces":[{"traceID":"ab"}],' + spans + b"}")) as store:
        [found] = TraceSource(f"{kind}://{store.host}?{ALL}").requests()
    assert isinstance(found, BadLine)
    assert found.reason.endswith("traceId: not 32 hex digits")
