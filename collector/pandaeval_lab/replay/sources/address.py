"""The address of a trace store, as people write it: ``jaeger://localhost:16686?service=desk&since=2h``."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import parse_qsl, urlsplit

from pandaeval_collector.base.section import parse_duration
from pandaeval_collector.base.untrusted.printable import one_printable_line
from pandaeval_lab.replay.files import UnusableInputError

PORTS = {"jaeger": 16686, "tempo": 3200}
"""Ports of the query APIs, where an address names none and does not ask for TLS."""
EXAMPLES = "jaeger://localhost:16686?service=desk&since=2h, tempo+https://tempo.example?service=desk&limit=500"
_SCHEME = re.compile(r"([a-z]+)(\+https?)?://", re.ASCII)
_TRACE = re.compile(r"[0-9a-f]{32}")
_SHARED = ("service", "since", "until", "limit", "trace", "user", "token_env", "tenant")
_OWN = {"jaeger": ("operation",), "tempo": ("q",)}
_MOST = 1_000_000


@dataclass(frozen=True, slots=True)
class StoreAddress:
    """A trace store and what is asked of it. ``written``: the address as it was given; ``url``: of the query API;
    ``since_ns``, ``until_ns``: Unix nanoseconds, the second excluded; ``limit``: traces at most, the newest;
    ``traces``: the ids in hex of the only ones wanted; ``token_env``: name of the variable with a token, which is sent
    as ``user``'s password where there is one; ``tenant``: of a store with several; ``own``: parameters that only this
    kind of store knows."""

    written: str
    kind: str
    url: str
    since_ns: int
    until_ns: int
    limit: int
    service: str = ""
    traces: tuple[str, ...] = ()
    user: str = ""
    token_env: str = ""
    tenant: str = ""
    own: Mapping[str, str] | None = None

    def told(self, text: str) -> UnusableInputError:
        """Makes an error about the store at this address."""
        return UnusableInputError(f"{one_printable_line(self.written)}: {text}")

    @property
    def window(self) -> str:
        """The time that is asked for, for people."""
        return f"{_moment(self.since_ns)} to {_moment(self.until_ns)}"


def place_of(written: str) -> StoreAddress:
    """Reads an address. Raises :class:`UnusableInputError` with a sentence that says what to write."""
    shown = one_printable_line(written)
    found = _SCHEME.match(written)
    if found is None or found[1] not in PORTS:
        raise UnusableInputError(f"{shown}: is no trace store that can be asked; write {EXAMPLES}")
    kind, secure = found[1], found[2] == "+https"
    try:
        parts = urlsplit(f"{'https' if secure else 'http'}://{written[found.end() :]}")
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise UnusableInputError(f"{shown}: {error}; write {EXAMPLES}") from error
    if not host or parts.username is not None:
        cure = "give a token by token_env=NAME, and its user by user=NAME" if host else f"write {EXAMPLES}"
        raise UnusableInputError(f"{kind}://…: {cure}" if host else f"{shown}: names no host; {cure}")
    known = (*_SHARED, *_OWN[kind])
    said: dict[str, str] = {}
    for key, value in parse_qsl(parts.query, keep_blank_values=True):
        if key not in known:
            raise UnusableInputError(f"{shown}: {one_printable_line(key)} means nothing here; {', '.join(known)} do")
        said[key] = f"{said[key]},{value}" if key == "trace" and key in said else value
    numbered = port or (None if secure else PORTS[kind])
    name = f"[{host}]" if ":" in host else host
    url = f"{parts.scheme}://{name}{'' if numbered is None else f':{numbered}'}{parts.path.rstrip('/')}"
    limit = said.get("limit", "1000")
    if not (limit.isascii() and limit.isdecimal() and 0 < int(limit) <= _MOST):
        raise UnusableInputError(f"{shown}: limit has to be a number from 1 to {_MOST:,}")
    ids = tuple(dict.fromkeys(part.strip().lower() for part in said.get("trace", "").split(",") if part.strip()))
    if wrong := next((id_ for id_ in ids if not _TRACE.fullmatch(id_)), None):
        raise UnusableInputError(f"{shown}: trace={one_printable_line(wrong)}: the id of a trace has 32 hex digits")
    now = time.time_ns()
    since, until = _time(shown, "since", said.get("since", "24h"), now), _time(shown, "until", said.get("until"), now)
    if since >= until:
        raise UnusableInputError(f"{shown}: since has to be before until")
    return StoreAddress(
        written=written,
        kind=kind,
        url=url,
        since_ns=since,
        until_ns=until,
        limit=int(limit),
        service=said.get("service", ""),
        traces=ids,
        user=said.get("user", ""),
        token_env=said.get("token_env", ""),
        tenant=said.get("tenant", ""),
        own={key: said[key] for key in _OWN[kind] if key in said},
    )


def _time(shown: str, key: str, text: str | None, now_ns: int) -> int:
    if text is None:
        return now_ns
    try:
        return now_ns - int(parse_duration(text) * 1e9)
    except ValueError:
        pass  # then it has to be a time
    try:
        # A plus sign is a blank in a query.
        found = datetime.fromisoformat(text.strip().replace(" ", "+") if "T" in text else text)
    except ValueError as error:
        cure = "write a time (RFC 3339) or how long ago, such as 7d or 2h"
        raise UnusableInputError(f"{shown}: {key}={one_printable_line(text)}: {cure}") from error
    return int((found if found.tzinfo is not None else found.replace(tzinfo=UTC)).timestamp()) * 10**9


def _moment(time_ns: int) -> str:
    return datetime.fromtimestamp(time_ns // 10**9, UTC).isoformat().replace("+00:00", "Z")
