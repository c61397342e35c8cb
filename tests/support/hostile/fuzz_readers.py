"""Nearly valid requests to API, page and MCP."""

from __future__ import annotations

import json
import random
from typing import Any
from urllib.parse import quote

from support.hostile.fuzz import JSON, Shot, spoilt

_API = "/api/v1"
_IDS = ("00000000000000000000000000000001", "f" * 32, "session-1-1", "run-1", "live", "0", "..", "%00", "a/b", "\u202e")
_LISTS = ("/traces", "/sessions", "/results", "/overview", "/metrics", "/annotations", "/incidents", "/runs")
_PAGE = ("/page/index", "/page/session")
_OF_ONE = ("/traces/{}", "/sessions/{}", "/incidents/{}", "/runs/{}", "/runs/{}/results", "/page/traces/{}")
_QUERY: dict[str, tuple[str, ...]] = {
    "cursor": ("", "WzEsMl0=", "e30", "bm8="),
    "limit": ("1", "50", "200", "0", "-1", "201", "1e3", "9" * 30),
    "order": ("worst", "newest", "best"),
    "since": ("1h", "7d", "2026-01-01", "2026-01-01T00:00:00Z", "-1d", "9" * 20, "0"),
    "until": ("1h", "now", "2036-01-01", "1969-12-31T23:59:59Z"),
    "agent": ("helper", "", "%"),
    "service": ("shop", "*", "'"),
    "user": ("u", "\U0001f9ea"),
    "session": ("session-1-1", "\0"),
    "failed": ("true", "false", "2", ""),
    "metric": ("loop_detection", "trace.confidence", "nothing", "."),
    "outcome": ("scored", "unscored", "x"),
    "success": ("true", "maybe"),
    "text": ("refund", "a" * 3_000, '"', "\\", "NEAR("),
    "attribute": ("a=b", "=", "a", "a=b=c"),
    "step": ("3600", "0", "-1", "nan", "inf", "1e-9"),
    "a": ("live", "run-1"),
    "b": ("live", ""),
    "id": _IDS,
}
_RUN = {"filters": {"since": "1h"}, "metrics": ["trace.response"], "sample": 0.1, "dry_run": True}
_ORDERS: dict[str, Any] = {
    "/annotations": {"trace_id": "0" * 31 + "1", "metric": "trace.confidence", "passed": True, "comment": "so"},
    "/runs": _RUN,
    "/schedules": {"cron": "0 3 * * *", "run": _RUN | {"name": "nightly"}},
}
_ACTS = ("/runs/{}/cancel", "/runs/{}/retry")
_TOOLS = ("find_traces", "incidents", "why_failed", "trace_steps", "pass_rates", "none")
_SAID = ("initialize", "ping", "tools/list", "tools/call", "tools/call", "tools/call", "prompts/get", "notifications/x")
_ODD: tuple[Any, ...] = (None, True, -1, 2**63, 1e308, "", "\ud800", "x" * 5_000, [], {}, [[[[[]]]]], {"a": {"b": {}}})


class ReaderFuzzer:
    """Produces the same shots for the same seed."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)

    def shot(self) -> Shot:
        """Return the next query, change or MCP message."""
        kind = self._chance.random()
        if kind < 0.6:
            return self._question()
        return self._order() if kind < 0.8 else self._message()

    def _question(self) -> Shot:
        chance = self._chance
        path = chance.choice(chance.choice((_LISTS, _PAGE, _OF_ONE))).format(quote(chance.choice(_IDS), safe="%"))
        names = chance.sample(sorted(_QUERY), chance.choice((0, 1, 2, 5)))
        pairs = [f"{name}={quote(self._odd(chance.choice(_QUERY[name])))}" for name in names]
        method = chance.choice(("GET",) * 18 + ("HEAD", "OPTIONS"))
        return Shot(f"{_API}{path}?{'&'.join(pairs)}"[:7_000], JSON, "", b"", method)

    def _odd(self, value: str) -> bytes:
        return spoilt(value.encode("utf-8", "surrogatepass"), 0.3, self._chance)

    def _order(self) -> Shot:
        chance = self._chance
        if chance.random() < 0.2:
            return Shot(_API + chance.choice(_ACTS).format(quote(chance.choice(_IDS), safe="%")), JSON, "", b"")
        if chance.random() < 0.05:
            return Shot(f"{_API}/schedules/{quote(chance.choice(_IDS), safe='%')}", JSON, "", b"", "DELETE")
        path, body = chance.choice([*_ORDERS.items()])
        return Shot(_API + path, self._media(), "", self._wrong(body))

    def _message(self) -> Shot:
        chance = self._chance
        message: dict[str, Any] = {
            "jsonrpc": "2.0",
            "id": chance.choice((1, "a", None, -1)),
            "method": chance.choice(_SAID),
        }
        named = ("trace_id", "since", "agent", "limit", "text", "failed", "metric", "nothing")
        arguments = {chance.choice(named): chance.choice((*_ODD, *_IDS)) for _ in range(chance.randint(0, 3))}
        message["params"] = {"name": chance.choice(_TOOLS), "arguments": arguments}
        return Shot("/mcp", self._media(), "", self._wrong(message))

    def _media(self) -> str:
        return JSON if self._chance.random() < 0.95 else self._chance.choice(("text/plain", "", "application/xml"))

    def _wrong(self, body: Any) -> bytes:
        copy = json.loads(json.dumps(body))
        if self._chance.random() < 0.5:
            self._replace(copy)
        return spoilt(json.dumps(copy).encode(), 0.3, self._chance)

    def _replace(self, held: Any) -> None:
        chance = self._chance
        places = [*held] if isinstance(held, dict) else [*range(len(held))]
        if not places:
            return
        place = chance.choice(places)
        if isinstance(held[place], (dict, list)) and chance.random() < 0.6:
            self._replace(held[place])
        else:
            held[place] = chance.choice(_ODD)
