"""Reads turns, input and final answer of a trace, and extracts single turns.

A turn is a user message and the outermost agent's work until the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter

from pandaeval_otel.model import Kind, Reasoning, Span, Trace, Turn
from pandaeval_otel.model.message import all_parts
from pandaeval_otel.normal.speech import NOTHING, ExchangeSide, answer_of, by_user_message, question_of
from pandaeval_otel.normal.tree import RUNS, Tree
from pandaeval_otel.normal.utility import conversation_calls

# Module constant: an enum lookup costs several times as much, and every span needs one.
_LLM = Kind.LLM
_NEVER = 1 << 63
_FROM_HISTORY = "input taken from the first model call"
_SAID = 24
"""Characters from which a question does not end with an agent's words by chance."""
_BEGAN = attrgetter("start_ns", "end_ns", "span_id")


@dataclass(slots=True)  # never changed
class Turns:
    """Turns in order, whether the last turn ends in a pending tool call, and notes about inferred parts."""

    turns: tuple[Turn, ...] = ()
    pending: bool = False
    notes: tuple[str, ...] = ()


def turns(tree: Tree) -> Turns:
    """Return a trace's turns. Each of several sequential agents has its own turn, unless an agent hands over to the
    next.
    """
    exchanges: list[_Exchange] = []
    for root in tree.roots:
        if root.kind in RUNS:
            exchanges += _of_run(root, tree)
    # If the steps of a workflow lost their parents, the workflow has neither question nor answer.
    silent = {root.span_id for root in tree.roots if root.kind is Kind.WORKFLOW}
    spoken = [each for each in exchanges if each.span_id not in silent or not _is_empty(each)]
    exchanges = spoken or exchanges
    if all(map(_is_empty, exchanges)):
        # There is no run, or streaming lost the parents of its model calls.
        calls = conversation_calls([span for span in tree.spans if span.kind is _LLM and tree.above(span) is None])
        exchanges = [_of_calls(group) for group in by_user_message(calls)] or exchanges
    exchanges = _without_handovers(exchanges)
    notes = dict.fromkeys(note for exchange in exchanges for note in exchange.notes)
    return Turns(tuple(map(_turn, exchanges)), bool(exchanges) and exchanges[-1].answer.pending, tuple(notes))


def _is_empty(exchange: _Exchange) -> bool:
    return exchange.question == exchange.answer == NOTHING


def _turn(exchange: _Exchange) -> Turn:
    question, answer = exchange.question, exchange.answer
    media_only = question.media_only or answer.media_only
    return Turn(question.text, answer.text, exchange.span_id, media_only, exchange.start_ns)


@dataclass(slots=True)
class _Exchange:
    question: ExchangeSide
    answer: ExchangeSide
    span_id: str
    start_ns: int
    notes: list[str] = field(default_factory=list)


def _without_handovers(exchanges: Sequence[_Exchange]) -> list[_Exchange]:
    """Join two runs of the same question if the first has no answer, or the second repeats or continues its answer."""
    kept: list[_Exchange] = []
    for exchange in exchanges:
        last = kept[-1] if kept else _Exchange(NOTHING, NOTHING, "", 0)
        text = last.question.text
        repeats = last.answer == exchange.answer and _FROM_HISTORY in exchange.notes
        is_same = (last.answer.text is None or repeats) and exchange.question.text in (None, text)
        if text is not None and (is_same or _passed_on(last.answer.text, exchange.question.text)):
            kept.pop()
            notes = last.notes + exchange.notes
            exchange = replace(exchange, question=last.question, start_ns=last.start_ns, notes=notes)
        kept.append(exchange)
    return kept


def _passed_on(answer: str | None, question: str | None) -> bool:
    """Return whether a question ends with an agent's answer: the next agent works on it."""
    answer_text = (answer or "").strip()
    return len(answer_text) >= _SAID and (question or "").rstrip().endswith(answer_text)


def _of_run(root: Span, tree: Tree) -> list[_Exchange]:
    exchange = _Exchange(question_of(root), answer_of(root.output), root.span_id, root.start_ns)
    if exchange.question != NOTHING and exchange.answer != NOTHING:
        return [exchange]
    # Spans of the run and of agents that took over, but not of agents used as tools.
    depth = tree.asides(root)
    inner = [span for span in tree.below(root) if tree.asides(span) == depth]
    groups = by_user_message(conversation_calls([span for span in inner if span.kind is _LLM])) or [[]]
    if len(groups) > 1 and exchange.question == NOTHING:
        return [_of_calls(group) for group in groups]
    runs = [span for span in inner if span.kind in RUNS]
    if exchange.question == NOTHING:
        _find_question(exchange, groups[0], runs)
    if exchange.answer == NOTHING and not _speaks(root) and root.error is None:
        _find_answer(exchange, groups[-1], runs, tree)
    return [exchange]


def _speaks(span: Span) -> bool:
    if span.output == ():
        return True
    spoken = [message for message in span.output or () if message.role in ("assistant", "")]
    return any(
        not message.parts or type(part) is not Reasoning for message in spoken for part in message.parts or (None,)
    )


def _find_question(exchange: _Exchange, calls: Sequence[Span], runs: Sequence[Span]) -> None:
    around = [run for run in runs if calls and run.start_ns <= calls[0].start_ns and run.output is not None]
    inner = "input taken from an inner agent"
    for spans, note in ((around, inner), (calls, _FROM_HISTORY), (runs, inner)):
        question = next((candidate for span in spans if (candidate := question_of(span)) != NOTHING), None)
        if question is not None:
            exchange.question = question
            exchange.notes.append(note)
            return


def _find_answer(exchange: _Exchange, calls: Sequence[Span], runs: Sequence[Span], tree: Tree) -> None:
    captured_runs = [run for run in runs if run.output is not None]
    for spans, source in ((calls, "the last model call"), (captured_runs, "an inner agent")):
        span = _last(spans)
        above = span and tree.above(span)
        if span is None or span.error is not None or (above is not None and above.error is not None):
            continue
        answer = answer_of(span.output)
        if answer != NOTHING:
            exchange.answer = answer
            if answer.text is not None:
                exchange.notes.append(f"final answer taken from {source}")
            return


def _of_calls(group: Sequence[Span]) -> _Exchange:
    question = next((candidate for call in group if (candidate := question_of(call)) != NOTHING), NOTHING)
    last = _last(group) or group[0]
    answer = NOTHING if last.error is not None else answer_of(last.output)
    return _Exchange(question, answer, last.span_id, min(call.start_ns for call in group))


def _last(spans: Sequence[Span]) -> Span | None:
    last = max(spans, key=_ended, default=None)
    if last is not None and answer_of(last.output).pending:
        return max(spans, key=_BEGAN)
    return last


def _ended(span: Span) -> tuple[int, int, str]:
    return span.end_ns, span.start_ns, span.span_id


def of_turn(trace: Trace, index: int) -> Trace:
    """Return the trace reduced to turn ``index`` (0-based), with the same ids, digest and tools.

    Raises ``IndexError``.
    """
    turns = trace.turns
    turn = turns[index]
    if len(turns) == 1:
        return trace
    is_last = index + 1 == len(turns)
    since = turn.start_ns if index else 0
    until = _NEVER if is_last else turns[index + 1].start_ns
    spans = tuple([span for span in trace.spans if since <= span.start_ns < until])
    parts = [part for span in spans for part in all_parts(span.output)]
    error = next((span.error for span in trace.spans if span.span_id == turn.span_id), None)
    return replace(
        trace,
        spans=spans,
        root_span_id=turn.span_id,
        input=turn.user,
        output=turn.assistant,
        turns=(turn,),
        tool_calls=tuple([call for call in trace.tool_calls if since <= call.start_ns < until]),
        reasoning=tuple(dict.fromkeys(part.text for part in parts if isinstance(part, Reasoning) and part.text)),
        error=trace.error if is_last else error,
        ends_in_tool_call=trace.ends_in_tool_call and is_last,
        llm_calls=len([span for span in spans if span.kind is Kind.LLM]),
    )
