"""Context helpers: sync, async, threads, generators."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from opentelemetry import baggage
from opentelemetry.context import get_current

from pandaeval_otel import using_case, using_session, using_user
from pandaeval_otel.processor._scope import NOTHING, ContextIds, scope_in


def here() -> ContextIds:
    return scope_in(get_current())


def test_nested_scopes_combine_and_end() -> None:
    with using_session("s"):
        with using_user("u"), using_case("c", 1):
            assert here() == ContextIds("s", "u", "c", "1")
        with using_session("inner"):
            assert here() == ContextIds("inner")
        assert here() == ContextIds("s")
    assert here() == NOTHING


def test_a_helper_can_be_reentered_and_reused() -> None:
    session = using_session("s")
    with session, session:
        assert here() == ContextIds("s")
    with session:
        assert here() == ContextIds("s")
    assert here() == NOTHING


def test_baggage_is_set_only_with_propagate() -> None:
    with using_session("s"):
        assert not baggage.get_all()
    with using_session("s", propagate=True):
        assert baggage.get_all() == {"pandaeval.session.id": "s"}
    with using_user("ada"), using_session("s", propagate=True):
        assert baggage.get_all() == {"pandaeval.session.id": "s"}, "the user stays here"


@using_session("decorated")
def _function(value: int) -> tuple[int, ContextIds]:
    """Documented."""
    return value, here()


def test_a_decorated_function_keeps_its_name() -> None:
    assert _function(1) == (1, ContextIds("decorated"))
    assert (_function.__name__, _function.__doc__) == ("_function", "Documented.")


async def test_tasks_do_not_share_their_sessions() -> None:
    async def one(name: str) -> str:
        with using_session(name):
            await asyncio.sleep(0)
            return here().session

    @using_session("decorated")
    async def decorated() -> str:
        await asyncio.sleep(0)
        return here().session

    assert inspect.iscoroutinefunction(decorated)
    assert await asyncio.gather(*(one(str(n)) for n in range(9)), decorated()) == [*map(str, range(9)), "decorated"]
    with using_session("s"):
        assert await asyncio.to_thread(here) == ContextIds("s")


def test_threads_get_the_session_by_a_copied_context_or_the_decorator() -> None:
    with ThreadPoolExecutor(1) as pool, using_session("s"):
        assert pool.submit(here).result() == NOTHING
        assert pool.submit(contextvars.copy_context().run, here).result() == ContextIds("s")
        assert pool.submit(using_session("t")(here)).result() == ContextIds("t")


def test_decorating_a_generator_is_an_error_with_a_fix() -> None:
    def steps() -> Iterator[int]:
        yield 1

    async def answers() -> AsyncIterator[int]:
        yield 1

    for function in (steps, answers):
        with pytest.raises(TypeError, match="around the loop that reads it"):
            using_session("g")(function)


async def test_a_generator_closed_in_another_context_leaves_no_session_or_log(caplog: Any) -> None:
    async def streaming() -> AsyncIterator[int]:
        with using_session("s"):
            yield 1
            yield 2

    stream = streaming()
    await asyncio.create_task(anext(stream))  # type: ignore[arg-type]
    await asyncio.create_task(stream.aclose())  # type: ignore[attr-defined]
    assert here() == NOTHING
    assert not caplog.records
