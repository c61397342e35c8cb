"""Traces for a judge, of any size and script."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from pandaeval_collector.jobs.attempts import Filing
from pandaeval_collector.judge.call import ModelAnswer, ModelCall
from pandaeval_collector.pipeline.line.decision import Conclusion
from pandaeval_collector.pipeline.line.line import Line
from pandaeval_collector.store import Chunk, Store
from pandaeval_otel.assembly import DueTrace
from pandaeval_otel.model import Kind, Span, ToolCall, ToolDefinition, Trace, Trigger, Turn
from pandaeval_otel.wire.splitting import split_traces
from support.made_traces import MadeTrace
from support.scripted_judge import GOOD, scripted_reply

TRACE_ID = "0af7651916cd43dd8448eb211c80319c"


def call(number: int, name: str = "search", **fields: Any) -> ToolCall:
    """Return the ``number``-th call, a second after the previous."""
    start = number * 10**9
    given: dict[str, Any] = {"arguments": {"q": number}, "has_arguments": True, "result": "ok", "has_result": True}
    return ToolCall(name, f"call_{number}", start_ns=start, end_ns=start + 10**8, **(given | fields))


def trace(
    user: str | None = "Where is my parcel?",
    answer: str | None = "It left the depot.",
    calls: Sequence[ToolCall] = (),
    **fields: Any,
) -> Trace:
    root = Span(TRACE_ID, "b7ad6b7169203331", "", "invoke_agent helper", Kind.AGENT, 0, 60 * 10**9)
    given: dict[str, Any] = {
        "agent": "helper",
        "tools": (ToolDefinition("search", "Finds a parcel.", {}),),
        "turns": (Turn(user, answer),),
        "input": user,
        "output": answer,
        "digest": "d1",
        "spans": (root,),
    }
    return Trace(TRACE_ID, root_span_id=root.span_id, tool_calls=tuple(calls), **(given | fields))


def stored(store: Store, made: MadeTrace, revision: int = 1) -> DueTrace:
    split = split_traces(made.request().SerializeToString())
    chunks = [
        Chunk(store.next_chunk_id(), part.trace_id, part.logs, len(part.items), part.start_ns, part.chunk)
        for part in split.fragments
    ]
    store.append(chunks).result()
    known = frozenset(item.id for part in split.fragments for item in part.items)
    ids, size = tuple(chunk.id for chunk in chunks), sum(len(chunk.data) for chunk in chunks)
    return DueTrace(made.trace_id, Trigger.ROOT_ENDED, True, False, ids, known, len(known), 0, size, revision)


class ScriptedConfidence:
    """Implements ``Caller`` with a fixed confidence."""

    async def complete(self, call: ModelCall) -> ModelAnswer:
        return ModelAnswer(scripted_reply(call.messages, "confidence", GOOD), 100, 20, 0.001, model=call.model)


def filed_here(line: Line, settle: Callable[[Callable[[], Conclusion]], Awaitable[None]]) -> Filing:
    """Return a line's filer in this process. ``settle``: commit."""

    async def file(name: str, *answers: Any) -> None:
        await settle(lambda: getattr(line, name)(*answers))

    return file
