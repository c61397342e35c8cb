"""Loopback query APIs of Jaeger (v3) and Tempo (v2) with recorded spans."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Collection, Iterable
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

Json = dict[str, Any]
_IDS = ("traceId", "spanId", "parentSpanId")


class QueryApi:
    """A context manager. ``speaks``: ``v3``, ``tempo-v2``; else 404 or ``page``. ``refuse``: initial 503 answers."""

    def __init__(
        self, requests: Iterable[Json], speaks: Collection[str], page: bool = False, refuse: int = 0, token: str = ""
    ) -> None:
        self.traces: dict[str, list[Json]] = {}
        for request in requests:
            for resource in request["resourceSpans"]:
                id_ = resource["scopeSpans"][0]["spans"][0]["traceId"]
                self.traces.setdefault(id_, []).append(resource)
        self.asked: list[tuple[str, dict[str, str], dict[str, str]]] = []
        self.speaks, self.page, self.refuse, self.token = frozenset(speaks), page, refuse, token
        self._http = _Http(("127.0.0.1", 0), _Handler)
        self._http.owner = self
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self._http.server_port}"

    @property
    def services(self) -> list[str]:
        return sorted({_service(each) for resources in self.traces.values() for each in resources})

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def within(self, since_ns: int, until_ns: int, limit: int, service: str = "") -> list[str]:
        """Return IDs of a service's traces in a window."""
        found = []
        for id_, resources in self.traces.items():
            starts = [start for each in resources if service in ("", _service(each)) for start in _starts([each])]
            if any(since_ns <= start <= until_ns for start in starts):
                found.append(id_)
        return found[:limit]

    def answer(self, path: str, asked: dict[str, str]) -> tuple[int, Any]:
        """Return status and document."""
        parts = path.strip("/").split("/")
        match parts:
            case ["api", "v3", *rest] if "v3" in self.speaks:
                return self._v3(rest, asked)
            case ["api", "search"] if "tempo-v2" in self.speaks:
                service = asked["q"].partition('"')[2].partition('"')[0]
                seconds = (int(asked[key]) * 10**9 for key in ("start", "end"))
                ids = self.within(*seconds, int(asked["limit"]), service)
                starts = {id_: str(min(_starts(self.traces[id_]))) for id_ in ids}
                return 200, {"traces": [{"traceID": id_.lstrip("0"), "startTimeUnixNano": starts[id_]} for id_ in ids]}
            case ["api", "v2", "traces", id_] if "tempo-v2" in self.speaks and id_ in self.traces:
                return 200, {"trace": {"resourceSpans": based(self._of([id_]))}}
        return 404, None

    def _v3(self, rest: list[str], asked: dict[str, str]) -> tuple[int, Any]:
        match rest:
            case ["services"]:
                return 200, {"services": self.services}
            case ["traces"]:
                window = (_ns(asked[f"query.start_time_{end}"]) for end in ("min", "max"))
                ids = self.within(*window, int(asked["query.num_traces"]), asked["query.service_name"])
            case ["traces", id_]:
                ids = [id_] if id_ in self.traces else []
            case _:
                return 404, None
        if not ids:
            return 404, {"error": {"httpCode": 404, "message": "No traces found"}}
        return 200, {"result": {"resourceSpans": self._of(ids)}}

    def _of(self, ids: Iterable[str]) -> list[Json]:
        return [each for id_ in ids for each in self.traces[id_]]


def based(value: Any) -> Any:
    """Encode IDs as protobuf JSON does."""
    if isinstance(value, list):
        return [based(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        key: base64.b64encode(bytes.fromhex(held)).decode() if key in _IDS and isinstance(held, str) else based(held)
        for key, held in value.items()
    }


def _service(resource: Json) -> str:
    attributes = {
        each["key"]: each["value"].get("stringValue", "") for each in resource["resource"].get("attributes", ())
    }
    return str(attributes.get("service.name", ""))


def _starts(resources: Iterable[Json]) -> list[int]:
    return [
        int(span["startTimeUnixNano"]) for each in resources for scope in each["scopeSpans"] for span in scope["spans"]
    ]


def _ns(text: str) -> int:
    whole, _, rest = text.rstrip("Z").partition(".")
    return int(datetime.fromisoformat(f"{whole}+00:00").timestamp()) * 10**9 + int(rest)


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    owner: QueryApi


class _Handler(BaseHTTPRequestHandler):
    server: _Http
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        owner, parts = self.server.owner, urlsplit(self.path)
        asked = {key: values[0] for key, values in parse_qs(parts.query).items()}
        owner.asked.append((parts.path, asked, {key.lower(): value for key, value in self.headers.items()}))
        if owner.token and self.headers.get("authorization") != owner.token:
            return self._say(401, b"who are you?", "text/plain")
        if owner.refuse:
            owner.refuse -= 1
            return self._say(503, b"busy", "text/plain")
        status, document = owner.answer(parts.path, asked)
        if document is None and owner.page:
            return self._say(200, b"<!doctype html><title>Jaeger UI</title>", "text/html")
        body = b"404 page not found" if document is None else json.dumps(document).encode()
        self._say(status, body, "text/plain" if document is None else "application/json")

    def _say(self, status: int, body: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass
