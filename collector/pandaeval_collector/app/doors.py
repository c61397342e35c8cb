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
from pandaeval_collector.receivers.admission import Admission
from pandaeval_collector.receivers.bind import Address, Tls, check_bind
from pandaeval_collector.receivers.otlp_grpc import OtlpGrpcServer
from pandaeval_collector.receivers.otlp_http import otlp_http_app
from pandaeval_collector.receivers.results_grpc import ResultsHandler
from pandaeval_collector.receivers.server import HttpServer
from pandaeval_collector.receivers.submit_grpc import SubmitHandler

_GRACE_S = 5.0
"""Seconds that gRPC calls get to end when the collector stops."""


class Doors:
    """Opens the listeners for OTLP over gRPC and HTTP. On one event loop."""

    def __init__(self, config: Config, token: str | None, tls: Tls | None, telemetry: Telemetry) -> None:
        server = config.server
        self._insecure_bind, self._token, self._tls, self._telemetry = server.insecure_bind, token, tls, telemetry
        self._max_bytes, self._max_items = server.max_request_bytes, server.max_request_items
        self._allowed_hosts = server.allowed_hosts
        self._reading = BodyReader.of_messages(server.max_request_bytes)
        read_bytes = self._reading.at_once * server.max_request_bytes
        self._admission = Admission.beside_reading(server.max_inflight_bytes, read_bytes)

    def check(self, *addresses: Address) -> None:
        """Raises ``UserError`` for an address that others can reach where neither TLS nor a token protects it."""
        for address in addresses:
            check_bind(address, self._tls, self._token, self._insecure_bind)

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
        http_server = self._http(pipeline, http, routes)
        http_address = await http_server.start()
        parts.push_async_callback(http_server.stop)
        grpc_server = self._grpc(pipeline, watching, grpc)
        grpc_address = await grpc_server.start()
        parts.push_async_callback(grpc_server.stop, _GRACE_S)
        parts.push_async_callback(watching.close)
        self._admission.draining = False
        return grpc_address, http_address

    def refuse(self) -> None:
        """Answers every new request from now on with "come back later"."""
        self._admission.draining = True

    def _grpc(self, pipeline: Pipeline, watching: Watching, address: Address) -> OtlpGrpcServer:
        submit = SubmitHandler(pipeline, self._admission, self._telemetry, self._max_items, self._reading)
        results = ResultsHandler(watching, self._telemetry, self._reading)
        return OtlpGrpcServer(
            pipeline,
            self._admission,
            address,
            max_request_bytes=self._max_bytes,
            max_request_items=self._max_items,
            reading=self._reading,
            token=self._token,
            tls=self._tls,
            handlers=[submit.handler, results.handler],
            telemetry=self._telemetry,
        )

    def _http(self, pipeline: Pipeline, address: Address, routes: Sequence[BaseRoute]) -> HttpServer:
        # Other machines reach it under names of their network, which are not known here.
        hosts = self._allowed_hosts if self._token is None and address.is_loopback else None
        app = otlp_http_app(
            pipeline,
            self._admission,
            max_request_bytes=self._max_bytes,
            max_request_items=self._max_items,
            token=self._token,
            hosts=hosts,
            routes=routes,
            telemetry=self._telemetry,
        )
        return HttpServer(app, address, setting="server.http", tls=self._tls)
