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
"""A result as in ``pandaeval evaluate --format json``, plus ``cursor``. Pass the cursor as ``after`` to resume."""


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
    """Yield stored results, oldest first, then new results as they are committed, without end.

    ``trace``: a span, or a trace id as number or 32 hex digits. ``metric``: with or without level
    (``trace.coherence``). ``after``: only results after this cursor; -1: only new results. Other arguments are a
    processor's. Survives collector restarts without gaps or repeats, with -1 from the first result on. Raises
    ``grpc.aio.AioRpcError`` if the collector refuses, but waits for a collector that it cannot reach.
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
                    _log.warning("the collector %s cannot be reached (%s): %s", where.endpoint, why, cure(where, why))
                backoff = min(_MAX_BACKOFF_S, _BACKOFF_S * 2.0 ** min(failures, 10)) * random.uniform(0.5, 1.0)
                await asyncio.sleep(backoff if delay is None else delay)


def wait_for_result(trace: str | int | Span, metric: str, timeout: float = 30.0, **collector: Any) -> Result:
    """Block until a trace has a result of ``metric``, and return the first result.

    ``collector``: a processor's arguments, such as ``endpoint``. Raises :class:`TimeoutError` after ``timeout``
    seconds, and ``grpc.aio.AioRpcError`` as :func:`watch_results`. In coroutines, use :func:`watch_results`.
    """

    async def first() -> Result:
        async with asyncio.timeout(timeout):
            async for result in watch_results(trace=trace, metric=metric, **collector):
                return result
            raise AssertionError("watching ends only with an error")

    # On a separate thread, because a thread with a running loop (as in a notebook) cannot run a second loop.
    with ThreadPoolExecutor(1, thread_name_prefix="pandaeval-results") as thread:
        try:
            return thread.submit(asyncio.run, first()).result()
        except TimeoutError as error:
            raise TimeoutError(f"no result of {metric} for trace {trace_id(trace)} within {timeout:g} s") from error


def trace_id(trace: str | int | Span) -> str:
    """Return a trace id as 32 hex digits."""
    if isinstance(trace, Span):
        trace = trace.get_span_context().trace_id
    if isinstance(trace, int):
        return f"{trace:032x}"
    return trace.lower()
