"""OTLP over HTTP: ``POST /v1/traces`` and ``POST /v1/logs``, protobuf or JSON."""

from __future__ import annotations

import functools
import math
from collections.abc import Collection, Sequence

from google.protobuf.json_format import MessageToJson
from google.protobuf.message import Message
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from pandaeval_collector.base.untrusted.foreign_pages import (
    HOSTS_TOLD,
    ORIGIN_TOLD,
    is_known_host,
    is_own_origin,
)
from pandaeval_collector.receivers._answers import DoorAnswer, OthersHost, OthersPage, Outcomes, Unauthenticated
from pandaeval_collector.receivers._auth import (
    UNAUTHENTICATED_MESSAGE,
    is_authorised,
    is_logged_in,
    is_page,
    require_token,
)
from pandaeval_collector.receivers._http_body import (
    JSON,
    PROTOBUF,
    BodyLimits,
    media_type,
    protobuf_from_json,
    read_body,
)
from pandaeval_collector.receivers._misdirected import wrong_path
from pandaeval_collector.receivers._protocol import Accepted, Ingest, NoDoorTelemetry, ReceiverTelemetry
from pandaeval_collector.receivers._scales import DEFAULT_MAX_ITEMS, Scales
from pandaeval_collector.receivers._signals import SIGNALS, Signal
from pandaeval_collector.receivers._status import status_of
from pandaeval_collector.receivers.admission import Admission

DEFAULT_MAX_REQUEST_BYTES = 16 * 1024 * 1024


def otlp_http_app(
    ingest: Ingest,
    admission: Admission,
    *,
    max_request_bytes: int = DEFAULT_MAX_REQUEST_BYTES,
    max_request_items: int = DEFAULT_MAX_ITEMS,
    body_timeout_s: float = 30.0,
    token: str | None = None,
    hosts: Collection[str] | None = None,
    routes: Sequence[BaseRoute] = (),
    telemetry: ReceiverTelemetry | None = None,
) -> Starlette:
    """The application for an :class:`~pandaeval_collector.receivers.server.HttpServer`.

    ``max_request_bytes`` holds before and after decompression. JSON is dearer: parsing takes about 15 times its size
    out of ``admission``. ``token`` is demanded of every request, also of the further ``routes``. ``hosts``: names under
    which OTLP may be sent beside addresses and localhost, so that no web page of others sends any; ``None``: any name.
    """
    require_token(token)
    outcomes = Outcomes("http", telemetry or NoDoorTelemetry())
    door = _Door(ingest, admission, BodyLimits(max_request_bytes, body_timeout_s), Scales(max_request_items), outcomes)
    names = None if hosts is None else frozenset(name.lower() for name in hosts)
    exports = [
        Route(signal.http_path, functools.partial(door.export, signal, names), methods=["POST"], name=signal.http_path)
        for signal in SIGNALS
    ]
    locks = [Middleware(_BearerAuth, token=token, outcomes=outcomes)] if token is not None else []
    return Starlette(routes=[*exports, *routes], middleware=locks, exception_handlers={404: wrong_path})


class _Door:
    def __init__(
        self, ingest: Ingest, admission: Admission, limits: BodyLimits, scales: Scales, outcomes: Outcomes
    ) -> None:
        self._ingest = ingest
        self._scales = scales
        self._admission = admission
        self._limits = limits
        self._outcomes = outcomes

    async def export(self, signal: Signal, hosts: frozenset[str] | None, request: Request) -> Response:
        try:
            if hosts is not None:
                _refuse_foreign_pages(request, hosts)
            media = media_type(request)
            accepted = await self._store(signal, request, media)
        except Exception as error:  # noqa: BLE001 - whatever one request does, it is answered and counted
            return _refusal(self._outcomes.refused(error), request.headers.get("content-type", ""))
        self._outcomes.accepted(accepted)
        return _response(200, signal.respond(accepted), media)

    async def _store(self, signal: Signal, request: Request, media: str) -> Accepted:
        async with self._admission.reserve() as reservation:
            body = await read_body(request, reservation, self._limits)
            if media == JSON:
                body = await protobuf_from_json(signal, body, reservation)
            return await self._scales.store(signal, self._ingest, body, reservation)


def _refuse_foreign_pages(request: Request, hosts: frozenset[str]) -> None:
    headers, host = request.headers, request.headers.get("host", "")
    if not is_known_host(host, hosts):
        raise OthersHost(HOSTS_TOLD)
    if not is_own_origin(headers.getlist("origin"), host, headers.get("sec-fetch-site"), hosts):
        raise OthersPage(ORIGIN_TOLD)


class _BearerAuth:
    """Refuses requests without the token before their body is read. A browser that opens the page asks for it."""

    def __init__(self, app: ASGIApp, token: str, outcomes: Outcomes) -> None:
        self._app = app
        self._token = token
        self._outcomes = outcomes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        page = is_page(scope["path"])
        if is_authorised(headers.get(b"authorization"), self._token) or (
            page and is_logged_in(scope["method"], headers, self._token)
        ):
            await self._app(scope, receive, send)
            return
        answer = self._outcomes.refused(Unauthenticated(UNAUTHENTICATED_MESSAGE))
        response = _refusal(answer, headers.get(b"content-type", b"").decode("latin-1"))
        if page:
            response.headers["www-authenticate"] = 'Basic realm="pandaeval", charset="UTF-8"'
            response.headers.append("www-authenticate", "Bearer")
        await response(scope, receive, send)


def _refusal(answer: DoorAnswer, content_type: str) -> Response:
    """A ``google.rpc.Status`` as body, in the encoding that the sender speaks, as OTLP asks."""
    media = PROTOBUF if content_type.lower().startswith(PROTOBUF) else JSON
    response = _response(answer.http, status_of(answer), media)
    if answer.retry_after_s is not None:
        response.headers["retry-after"] = str(max(1, math.ceil(answer.retry_after_s)))
    if answer.http == 401:
        response.headers["www-authenticate"] = "Bearer"
    return response


def _response(status: int, message: Message, media: str) -> Response:
    content = MessageToJson(message, indent=None).encode() if media == JSON else message.SerializeToString()
    return Response(content, status, media_type=media)
