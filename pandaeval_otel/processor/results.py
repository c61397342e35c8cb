"""Fetches results back into the application: for guardrails, tests and notebooks."""

from __future__ import annotations

import asyncio
import json
import logging
import random
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Unpack

import grpc
import grpc.aio
from opentelemetry.trace import Span

from pandaeval_otel._proto.result_service_pb2 import WatchResultsRequest, WatchResultsResponse
from pandaeval_otel.processor.connection import cure, retry_after_s, watching_channel
from pandaeval_otel.processor.settings import Options, settings

_log = logging.getLogger(__name__)

_AGAIN = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.ABORTED, grpc.StatusCode.CANCELLED)
_WATCH = "/pandaeval.v1.ResultService/WatchResults"
_BACKOFF_S, _MAX_BACKOFF_S = 0.1, 5.0

Result = dict[str, Any]
"""A result as ``pandaeval evaluate --format json`` prints it, with ``cursor``: passed as ``after``, watching resumes
behind it."""


async def watch_results(
    *,
    session: str = "",
    trace: str | int | Span = "",
    agent: str = "",
    metric: str = "",
    after: int = 0,
    endpoint: str | None = None,
    **collector: Unpack[Options],
) -> AsyncIterator[Result]:
    """Yield the results that are stored already, oldest first, then new ones as they are committed, without end.

    ``trace``: a span, or a trace id as number or 32 hex digits. ``metric`` with or without its level
    (``trace.coherence``). ``after``: only results behind this cursor; -1: only those from now on. The other arguments
    are those of a processor. Waits for a collector that goes away, and misses or repeats nothing. Raises
    ``grpc.aio.AioRpcError`` when the collector refuses.
    """
    where = settings(endpoint=endpoint, **collector)
    request = WatchResultsRequest(session_id=session, trace_id=trace_id(trace), agent=agent, metric=metric, after=after)
    failures = 0
    async with watching_channel(where) as channel:
        watch = channel.unary_stream(_WATCH, WatchResultsRequest.SerializeToString, WatchResultsResponse.FromString)
        while True:
            try:
                async for found in watch(request, metadata=where.headers):
                    failures = 0
                    request.after = found.cursor
                    yield {**json.loads(found.result_json), "cursor": found.cursor}
            except grpc.aio.AioRpcError as error:
                delay = retry_after_s(error.trailing_metadata())
                if error.code() not in _AGAIN and delay is None:
                    raise
                failures += 1
                if failures == 1 and delay is None and error.code() is grpc.StatusCode.UNAVAILABLE:
                    why = error.details() or ""
                    _log.warning("results of %s have to wait (%s): %s", where.endpoint, why, cure(where, why))
                backoff = min(_MAX_BACKOFF_S, _BACKOFF_S * 2.0 ** min(failures, 10)) * random.uniform(0.5, 1.0)
                await asyncio.sleep(backoff if delay is None else delay)


def wait_for_result(trace: str | int | Span, metric: str, timeout: float = 30.0, **collector: Any) -> Result:
    """Block until a trace has a result of ``metric``, and return the first one. ``collector``: arguments of a
    processor, such as ``endpoint``. Raises :class:`TimeoutError`, naming metric and trace, after ``timeout`` seconds.
    In a coroutine use :func:`watch_results` instead: this would block its loop."""

    async def first() -> Result:
        async with asyncio.timeout(timeout):
            async for result in watch_results(trace=trace, metric=metric, **collector):
                return result
            raise AssertionError("watching ends only with an error")

    # On a thread of its own: a caller with a running loop (a notebook) can have no second one on the same thread.
    with ThreadPoolExecutor(1, thread_name_prefix="pandaeval-results") as thread:
        try:
            return thread.submit(asyncio.run, first()).result()
        except TimeoutError as error:
            raise TimeoutError(f"no result of {metric} for trace {trace_id(trace)} within {timeout:g} s") from error


def trace_id(trace: str | int | Span) -> str:
    """Return a span's or a number's trace id as 32 hex digits."""
    if isinstance(trace, Span):
        trace = trace.get_span_context().trace_id
    if isinstance(trace, int):
        return f"{trace:032x}"
    return trace.lower()
