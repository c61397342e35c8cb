"""Client of query APIs: JSON over HTTP, with limits on bytes and time."""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self, TypeVar
from urllib.parse import SplitResult, parse_qsl, urlsplit

import httpx

from pandaeval_collector.base.section import parse_moment
from pandaeval_collector.base.untrusted.foreign_pages import is_loopback
from pandaeval_collector.base.untrusted.json_size import parsed_size
from pandaeval_collector.base.untrusted.printable import one_printable_line
from pandaeval_collector.receivers import Refusal
from pandaeval_collector.receivers._inflate import inflater_for
from pandaeval_collector.show.view.texts import moment
from pandaeval_lab.replay.files import UnusableInputError
from pandaeval_otel.wire.otlp_json import BadOtlp, decode_json, traces_from_json

PORTS = {"jaeger": 16686, "tempo": 3200}
"""Default ports of the query APIs, for addresses without port and TLS."""
EXAMPLES = "jaeger://localhost:16686?service=desk&since=2h, tempo+https://tempo.example?service=desk&limit=500"
_SCHEME = re.compile(r"([a-z]+)(\+https?)?://", re.ASCII)
_TRACE = re.compile(r"[0-9a-f]{32}")
_SHARED = ("service", "since", "until", "limit", "trace", "user", "token_env", "tenant")
_OWN = {"jaeger": (), "tempo": ("q",)}
_MOST = 1_000_000
_TENANT = {"jaeger": "x-tenant", "tempo": "x-scope-orgid"}
"""The header that names the tenant of a store with several."""
MOST_BYTES = 64 << 20
"""Maximum bytes of an answer, before and after decompression."""
_MOST_PARSED = 512 << 20
"""Maximum estimated bytes of an answer as objects. Usual traces of about 32 MiB need this size."""
_TOO_LARGE = "more than 64 MiB, or than 512 MiB once it is read"
_DEADLINE_S = 120.0
"""Seconds for all of an answer."""
_TIMEOUT = httpx.Timeout(60.0, connect=10.0)
_AGAIN = frozenset({429, 502, 503, 504})
_TRIES = 3
_LONGEST_WAIT_S = 10.0
_STRANGE = (BadOtlp, AttributeError, KeyError, OverflowError, RecursionError, TypeError, ValueError)
"""Errors that reading an answer of another form raises."""
Json = dict[str, Any]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class StoreAddress:
    """A trace store and its query.

    ``since_ns``, ``until_ns``: Unix nanoseconds, end exclusive. ``limit``: maximum traces, newest first. ``traces``:
    only these hex ids. ``token_env``: variable of the token, sent as ``user``'s password if given. ``query``: TraceQL.
    """

    written: str
    kind: str
    url: str
    since_ns: int
    until_ns: int
    limit: int
    service: str
    traces: tuple[str, ...]
    user: str
    token_env: str
    tenant: str
    query: str

    def error(self, text: str, kind: type[UnusableInputError] = UnusableInputError) -> UnusableInputError:
        return kind(f"{one_printable_line(self.written)}: {text}")

    def other_api(self, why: str) -> UnusableInputError:
        kind, port = self.kind.capitalize(), PORTS[self.kind]
        return self.error(f"{self.url} is not a query API of {kind} (its usual port is {port}): {why}")

    @property
    def window(self) -> str:
        return f"{moment(self.since_ns / 1e6)} to {moment(self.until_ns / 1e6)}"


def place_of(written: str) -> StoreAddress:
    shown = one_printable_line(written)
    scheme = _SCHEME.match(written)
    if scheme is None or scheme[1] not in PORTS:
        raise UnusableInputError(f"{shown}: is not the address of a supported trace store; write {EXAMPLES}")
    try:
        return _read_address(written, scheme[1], scheme[2] == "+https", written[scheme.end() :])
    except ValueError as error:
        raise UnusableInputError(f"{shown}: {error}") from error


def _read_address(written: str, kind: str, secure: bool, rest: str) -> StoreAddress:
    parts = urlsplit(f"{'https' if secure else 'http'}://{rest}")
    if parts.username is not None:
        raise UnusableInputError(
            f"{kind}://…: name the token's environment variable with token_env=VARIABLE, and its user with user=NAME"
        )
    given = _parameters(parts.query, (*_SHARED, *_OWN[kind]))
    since, until = _time("since", given.get("since", "24h")), _time("until", given.get("until", "0s"))
    if since >= until:
        raise ValueError("since must be before until")
    return StoreAddress(
        written=written,
        kind=kind,
        url=_url(parts, None if secure else PORTS[kind]),
        since_ns=since,
        until_ns=until,
        limit=_limit(given.get("limit", "1000")),
        traces=_trace_ids(given.get("trace", "")),
        query=given.get("q", ""),
        **{name: given.get(name, "") for name in ("service", "user", "token_env", "tenant")},
    )


def _url(parts: SplitResult, default_port: int | None) -> str:
    try:
        host, port = parts.hostname, parts.port or default_port
    except ValueError as error:
        raise ValueError(f"{error}; write {EXAMPLES}") from error
    if not host:
        raise ValueError(f"names no host; write {EXAMPLES}")
    name = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{name}{f':{port}' if port else ''}{parts.path.rstrip('/')}"


def _parameters(query: str, known: Sequence[str]) -> dict[str, str]:
    given: dict[str, str] = {}
    for key, value in parse_qsl(query, keep_blank_values=True):
        if key not in known:
            raise ValueError(f"{one_printable_line(key)} is not a known parameter; use {', '.join(known)}")
        given[key] = f"{given[key]},{value}" if key == "trace" and key in given else value
    return given


def _limit(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and 0 < int(text) <= _MOST):
        raise ValueError(f"limit must be a number from 1 to {_MOST:,}")
    return int(text)


def _trace_ids(text: str) -> tuple[str, ...]:
    ids = dict.fromkeys(part.strip().lower() for part in text.split(",") if part.strip())
    for id_ in ids:
        if not _TRACE.fullmatch(id_):
            raise ValueError(f"trace={one_printable_line(id_)}: the id of a trace has 32 hex digits")
    return tuple(ids)


def _time(key: str, text: str) -> int:
    try:
        # A plus sign means a space in a query.
        return int(parse_moment(text.strip().replace(" ", "+") if "T" in text else text).timestamp() * 1e6) * 1000
    except ValueError as error:
        cure = "write a time (RFC 3339) or how long ago, such as 7d or 2h"
        raise ValueError(f"{key}={one_printable_line(text)}: {cure}") from error


class AnswerTooLargeError(UnusableInputError):
    """An answer that exceeds :data:`MOST_BYTES`, or whose objects would take too much memory."""


def newest_first(
    since: int, until: int, least: int, ask: Callable[[int, int], tuple[T, bool]]
) -> Iterator[tuple[T, bool]]:
    """Yield everything between ``since`` and ``until``, in windows from the end.

    ``ask`` returns content and whether it is complete. If it is incomplete or too large, the later half is queried,
    down to ``least``. Border items may repeat.
    """
    end, width = until, until - since
    while end > since:
        begin = max(since, end - width)
        is_least = end - begin <= least
        try:
            found, whole = ask(begin, end)
        except AnswerTooLargeError:
            if is_least:
                raise
            whole = False
        if whole or is_least:
            yield found, whole
            end, width = begin, width * 2
        else:
            width = max(least, (end - begin) // 2)


@dataclass(frozen=True, slots=True)
class OneTrace:
    """An unscored trace.

    ``start_ns``: Unix nanoseconds, 0 if unknown; ``data``: protobuf request; ``problem``: why it is missing.
    """

    start_ns: int
    data: bytes
    problem: str = ""


def by_trace(document: Mapping[str, Any]) -> dict[str, OneTrace]:
    """Split a document into a request per trace, latest first, by hex id.

    Raises ``TypeError``, ``KeyError``, ``AttributeError`` or ``ValueError``.
    """
    found: dict[str, list[Json]] = {}
    starts: dict[str, int] = {}
    for resource in document["resourceSpans"]:
        for scope in resource.get("scopeSpans") or ():
            shares: dict[str, list[Json]] = {}
            for span in scope.get("spans") or ():
                id_, start = str(span["traceId"]).lower(), int(span.get("startTimeUnixNano") or 0)
                shares.setdefault(id_, []).append(span)
                starts[id_] = min(start, starts.get(id_, start))
            for id_, spans in shares.items():
                found.setdefault(id_, []).append({**resource, "scopeSpans": [{**scope, "spans": spans}]})
    traces: dict[str, OneTrace] = {}
    for id_ in sorted(found, key=starts.__getitem__, reverse=True):
        try:
            data = traces_from_json({"resourceSpans": found.pop(id_)}).SerializeToString()
            traces[id_] = OneTrace(starts[id_], data)
        except BadOtlp as error:
            traces[id_] = OneTrace(starts[id_], b"", str(error))
    return traces


class StoreClient:
    """Queries a trace store, on its own event loop. A context manager."""

    def __init__(self, place: StoreAddress) -> None:
        """Raise :class:`UnusableInputError` if the token's variable is not set."""
        self._place = place
        headers = {"accept": "application/json"} | ({_TENANT[place.kind]: place.tenant} if place.tenant else {})
        auth: httpx.Auth | None = None
        if place.token_env:
            token = os.environ.get(place.token_env, "").strip()
            if not token:
                raise place.error(f"the variable {place.token_env} (token_env) is not set")
            if place.user:
                auth = httpx.BasicAuth(place.user, token)
            else:
                headers["authorization"] = f"Bearer {token}"
        try:
            url = httpx.URL(place.url)
            assert url.host is not None  # httpx reads the host only now, and can raise an exception
        except (httpx.InvalidURL, UnicodeError) as error:
            raise place.error(f"{place.url} is not a valid address: {one_printable_line(str(error))}") from error
        # A proxy for the internet cannot reach a store on this machine.
        self._client = httpx.AsyncClient(
            base_url=url,
            headers=headers | {"accept-encoding": "gzip, identity"},
            auth=auth,
            timeout=_TIMEOUT,
            trust_env=not is_loopback(url.host),
            # The usual variable SSL_CERT_FILE names a self-signed certificate, also on this machine.
            verify=httpx.create_ssl_context() if place.url.startswith("https:") else True,
        )
        self._loop = asyncio.Runner()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._loop:
            self._loop.run(self._client.aclose())

    def get(
        self, what: str, path: str, parameters: Mapping[str, str | int], read: Callable[[dict[str, Any]], T]
    ) -> T | None:
        """Return the result of ``read`` on the answer's JSON; ``None`` if the path has no content.

        ``what``: name of the content. Raises :class:`UnusableInputError`, also :class:`AnswerTooLargeError`.
        """
        for attempt in range(_TRIES):
            status, body, wait = self._loop.run(self._once(what, path, parameters))
            if status not in _AGAIN or attempt == _TRIES - 1:
                break
            time.sleep(min(_LONGEST_WAIT_S, wait or 0.5 * 2**attempt))
        if status == 200:
            return self._read(body, read)
        if status == 404:
            return None
        text = one_printable_line(" ".join(body[:4000].decode(errors="replace").split()))[:300]
        if status in (401, 403):
            cure = "add a token with token_env=VARIABLE (and user=NAME for basic authentication)"
            raise self._place.error(f"{self._place.url} refused ({status}): {cure}")
        raise self._place.error(f"{self._place.url} answered {status}: {text or 'without a text'}")

    def _read(self, body: bytes, read: Callable[[dict[str, Any]], T]) -> T:
        try:
            answer = decode_json(body)
        except BadOtlp as error:
            raise self._place.other_api("its answer is not JSON, or is nested too deeply") from error
        if not isinstance(answer, dict):
            raise self._place.other_api("its answer is not a JSON object")
        try:
            return read(answer)
        except _STRANGE as error:
            kind, text = self._place.kind.capitalize(), f"{type(error).__name__}: {error}"
            raise self._place.error(
                f"the answer of {self._place.url} does not have the format of {kind}: {text}"
            ) from error

    async def _once(self, what: str, path: str, parameters: Mapping[str, str | int]) -> tuple[int, bytes, float | None]:
        url = self._place.url
        try:
            async with (
                asyncio.timeout(_DEADLINE_S),  # httpx's timeouts count from byte to byte
                self._client.stream("GET", path, params=dict(parameters)) as answer,
            ):
                body = await self._body(what, answer)
            after = answer.headers.get("retry-after", "")
            return answer.status_code, body, float(after) if after.isdecimal() else None
        except Refusal as error:
            raise self._place.error(f"the answer of {url} cannot be read: {error}") from error
        except TimeoutError as error:
            cure = "request less with since= and limit="
            raise self._place.error(f"{url} took more than {_DEADLINE_S:g} s for an answer: {cure}") from error
        except httpx.TimeoutException as error:
            cure = "check whether it is busy, or request less with since= and limit="
            raise self._place.error(f"{url} did not answer in time ({type(error).__name__}): {cure}") from error
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            cure = f"check that it runs, and that this is the port of its query API (TLS: tempo+https://): {error}"
            raise self._place.error(f"{url} cannot be reached; {one_printable_line(cure)}") from error

    async def _body(self, what: str, answer: httpx.Response) -> bytes:
        inflater = inflater_for(answer.headers.get("content-encoding", ""))
        body = bytearray()
        arrived, weight = 0, 0
        async for part in answer.aiter_raw():
            arrived += len(part)
            for piece in inflater.feed(part):
                body += piece
                weight += parsed_size(piece)
                if max(arrived, len(body)) > MOST_BYTES or weight > _MOST_PARSED:
                    why = f"is too large ({_TOO_LARGE}); exclude it with since=, until= or service="
                    raise self._place.error(f"{what} {why}", AnswerTooLargeError)
        inflater.finish()
        return bytes(body)
