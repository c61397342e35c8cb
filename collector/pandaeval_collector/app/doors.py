"""The OTLP listeners of a running collector, gRPC and HTTP, with the memory budget that they share."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack

from starlette.routing import BaseRoute

from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.config import Config
from pandaeval_collector.pipeline.pipeline import Pipeline
from pandaeval_collector.pipeline.watching import Watching
from pandaeval_collector.receivers._body_reader import BodyReader
from pandaeval_collector.receivers._signals import DoorSettings
from pandaeval_collector.receivers.admission import Admission
from pandaeval_collector.receivers.bind import Address, Tls, check_bind
from pandaeval_collector.receivers.otlp_grpc import OtlpGrpcServer
from pandaeval_collector.receivers.otlp_http import otlp_http_app
from pandaeval_collector.receivers.own_grpc import ResultsHandler, SubmitHandler
from pandaeval_collector.receivers.server import HttpServer

_GRACE_S = 5.0
"""Seconds that gRPC calls get to end when the collector stops."""


class Doors:
    """Opens the listeners for OTLP over gRPC and HTTP. On one event loop."""

    def __init__(self, config: Config, token: str | None, tls: Tls | None, telemetry: Telemetry) -> None:
        server = config.server
        self._server, self._tls = server, tls
        self._reading = BodyReader.of_messages(server.max_request_bytes)
        read_bytes = self._reading.at_once * server.max_request_bytes
        admission = Admission.beside_reading(server.max_inflight_bytes, read_bytes)
        self._settings = DoorSettings(admission, server.max_request_bytes, server.max_request_items, token, telemetry)

    def check(self, *addresses: Address) -> None:
        """Raises ``UserError`` for an address that others can reach where neither TLS nor a token protects it."""
        for address in addresses:
            check_bind(address, self._tls, self._settings.token, self._server.insecure_bind)

    async def open(
        self,
        pipeline: Pipeline,
        watching: Watching,
        grpc: Address,
        http: Address,
        parts: AsyncExitStack,
        routes: Sequence[BaseRoute] = (),
    ) -> tuple[Address, Address]:
        """Starts both listeners in front of ``pipeline`` and has ``parts`` stop them. ``routes``: what HTTP answers
        beside OTLP. Returns their addresses (gRPC, HTTP) with real port numbers."""
        settings = self._settings
        # Other machines reach it under names of their network, which are not known here.
        hosts = self._server.allowed_hosts if settings.token is None and http.is_loopback else None
        app = otlp_http_app(pipeline, settings, hosts=hosts, routes=routes)
        http_server = HttpServer(app, http, setting="server.http", tls=self._tls)
        http_address = await http_server.start()
        parts.push_async_callback(http_server.stop)
        submit = SubmitHandler(pipeline, settings, self._reading)
        results = ResultsHandler(watching, settings, self._reading)
        handlers = [submit.handler, results.handler]
        grpc_server = OtlpGrpcServer(pipeline, settings, grpc, reading=self._reading, tls=self._tls, handlers=handlers)
        grpc_address = await grpc_server.start()
        parts.push_async_callback(grpc_server.stop, _GRACE_S)
        parts.push_async_callback(watching.close)
        settings.admission.draining = False
        return grpc_address, http_address

    def refuse(self) -> None:
        """Answers every new request from now on with "come back later"."""
        self._settings.admission.draining = True
