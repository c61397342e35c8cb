"""OTLP over HTTP: ``POST /v1/traces`` and ``POST /v1/logs``, protobuf or JSON."""

from __future__ import annotations

import asyncio
import functools
import math
from collections.abc import Collection, Sequence

from google.protobuf.json_format import MessageToJson
from google.protobuf.message import Message
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from pandaeval_collector.base.runtime.cores import aside
from pandaeval_collector.base.untrusted.foreign_pages import HOSTS_TOLD, ORIGIN_TOLD, is_known_host, is_own_origin
from pandaeval_collector.base.untrusted.json_size import parsed_size
from pandaeval_collector.receivers import (
    Accepted,
    Ingest,
    Malformed,
    OthersHost,
    OthersPage,
    Refusal,
    TooLarge,
    TooSlow,
    Unauthenticated,
    UnsupportedMedia,
)
from pandaeval_collector.receivers._answers import Outcomes, status_of
from pandaeval_collector.receivers._inflate import inflater_for
from pandaeval_collector.receivers._signals import SIGNALS, DoorSettings, Signal, store
from pandaeval_collector.receivers.admission import UNAUTHENTICATED_MESSAGE, Reservation, is_authorised, is_logged_in
from pandaeval_collector.receivers.server import wrong_path
from pandaeval_otel.wire.otlp_json import BadOtlp, decode_json

PROTOBUF, JSON = "application/x-protobuf", "application/json"
_THREAD_FROM_BYTES = 256 * 1024  # converting JSON of this size takes 10 ms, too long for the event loop


async def read_body(request: Request, reservation: Reservation, max_bytes: int, timeout_s: float) -> bytes:
    """Return the decompressed body within ``timeout_s``; ``max_bytes`` also limits the compressed body.

    Raises :class:`TooLarge`, :class:`Malformed`, :class:`TooSlow`, :class:`UnsupportedMedia` and errors of
    ``reservation.grow``.
    """
    inflater = inflater_for(request.headers.get("content-encoding", ""))
    _check_length(int(request.headers.get("content-length", 0)), max_bytes)
    pieces: list[bytes] = []
    arrived = size = 0
    try:
        async with asyncio.timeout(timeout_s):
            with reservation.arrives():
                async for chunk in request.stream():
                    arrived += len(chunk)
                    _check_length(arrived, max_bytes)
                    for piece in inflater.feed(chunk):
                        size += len(piece)
                        _check_length(size, max_bytes)
                        reservation.grow(len(piece))
                        pieces.append(piece)
    except TimeoutError:
        raise TooSlow(f"the body did not arrive within {timeout_s:g} s") from None
    except ClientDisconnect:
        raise Malformed("the connection was closed before the end of the body") from None
    inflater.finish()
    return b"".join(pieces)


def _check_length(size: int, max_bytes: int) -> None:
    if size > max_bytes:
        raise TooLarge(f"the body is larger than {max_bytes} bytes")


def otlp_http_app(
    ingest: Ingest,
    settings: DoorSettings,
    *,
    body_timeout_s: float = 30.0,
    hosts: Collection[str] | None = None,
    routes: Sequence[BaseRoute] = (),
) -> Starlette:
    """Create the application for :class:`~pandaeval_collector.receivers.server.HttpServer`.

    JSON reserves about 15 times its size. ``hosts``: allowed names besides addresses and localhost, against DNS
    rebinding; ``None``: any.
    """
    exports = _Exports(ingest, settings, body_timeout_s, hosts)
    paths = [
        Route(signal.http_path, functools.partial(exports.answer, signal), methods=["POST"], name=signal.http_path)
        for signal in SIGNALS
    ]
    locks = []
    if settings.token is not None:
        locks.append(Middleware(_BearerAuth, token=settings.token, outcomes=exports.outcomes))
    return Starlette(routes=[*paths, *routes], middleware=locks, exception_handlers={404: wrong_path})


class _Exports:
    def __init__(
        self, ingest: Ingest, settings: DoorSettings, body_timeout_s: float, hosts: Collection[str] | None
    ) -> None:
        self._ingest, self._settings, self._body_timeout_s = ingest, settings, body_timeout_s
        self._names = None if hosts is None else frozenset(name.lower() for name in hosts)
        self.outcomes = Outcomes("http", settings.telemetry)

    async def answer(self, signal: Signal, request: Request) -> Response:
        try:
            self._check_origin(request)
            media = _media_of(request)
            accepted = await self._store(signal, request, media)
        except Exception as error:  # noqa: BLE001 - every request gets an answer and is counted
            return _refusal(self.outcomes.refused(error), request.headers.get("content-type", ""))
        self.outcomes.accepted(accepted)
        return _response(200, signal.respond(accepted), media)

    def _check_origin(self, request: Request) -> None:
        if self._names is None:
            return
        headers, host = request.headers, request.headers.get("host", "")
        if not is_known_host(host, self._names):
            raise OthersHost(HOSTS_TOLD)
        if not is_own_origin(headers.getlist("origin"), host, headers.get("sec-fetch-site"), self._names):
            raise OthersPage(ORIGIN_TOLD)

    async def _store(self, signal: Signal, request: Request, media: str) -> Accepted:
        settings = self._settings
        async with settings.admission.reserve() as reservation:
            body = await read_body(request, reservation, settings.max_bytes, self._body_timeout_s)
            if media == JSON:
                reservation.grow(parsed_size(body))
                convert = functools.partial(_protobuf_of, signal, body)
                body = convert() if len(body) < _THREAD_FROM_BYTES else await aside(convert)
            return await store(signal, self._ingest, body, reservation, settings)


def _media_of(request: Request) -> str:
    """Return the content type. OTLP types also block cross-site requests."""
    media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media not in (PROTOBUF, JSON):
        raise UnsupportedMedia(f"content-type {media[:80]!r} is neither {PROTOBUF} nor {JSON}")
    return media


def _protobuf_of(signal: Signal, document: bytes) -> bytes:
    try:
        return signal.from_json(decode_json(document)).SerializeToString()
    except BadOtlp as error:
        raise Malformed(str(error)) from None


class _BearerAuth:
    def __init__(self, app: ASGIApp, token: str, outcomes: Outcomes) -> None:
        self._app, self._token, self._outcomes = app, token, outcomes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        # People reach these by a browser.
        page = scope["path"] in ("/", "/runbook") or scope["path"].startswith("/api/")
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


def _refusal(answer: Refusal, content_type: str) -> Response:
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
