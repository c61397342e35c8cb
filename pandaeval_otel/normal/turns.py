"""Reads the turns of a trace, its input and its final answer.

A turn is a user message and all that the outermost agent does up to the next one. What the agent's own span states
comes first; what it does not state is taken from the model calls inside, and then from inner agents.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from pandaeval_otel.model import Kind, Span, Turn
from pandaeval_otel.normal.speech import NOTHING, Said, answered, asked, user_messages
from pandaeval_otel.normal.tree import RUNS, Tree

# To look up a member of an enum costs several times what these cost, and it is done for every span.
_LLM = Kind.LLM


@dataclass(slots=True)  # never changed
class Turns:
    """The turns in order, whether the last one ends in a pending tool call, and notes on what had to be inferred."""

    turns: tuple[Turn, ...] = ()
    pending: bool = False
    notes: tuple[str, ...] = ()


def turns(tree: Tree) -> Turns:
    """The turns of a trace; several agents that were run one after the other are several turns, unless one handed the
    user over to the next."""
    roots = tree.roots
    found: list[_Exchange] = []
    for root in roots:
        if root.kind in RUNS:
            found.extend(_of_run(root, tree))
    if not found:
        found = [_of_calls(group) for group in _by_user_message([root for root in roots if root.kind is _LLM])]
    joined = _without_handovers(found) if len(found) > 1 else found
    return Turns(
        turns=tuple(_turn(exchange) for exchange in joined),
        pending=bool(joined) and joined[-1].answer.pending,
        notes=tuple(dict.fromkeys(note for exchange in joined for note in exchange.notes)),
    )


@dataclass(slots=True)
class _Exchange:
    question: Said
    answer: Said
    span_id: str
    start_ns: int
    notes: list[str] = field(default_factory=list)


def _turn(exchange: _Exchange) -> Turn:
    question, answer = exchange.question, exchange.answer
    media_only = question.media_only or answer.media_only
    return Turn(question.text, answer.text, exchange.span_id, media_only, exchange.start_ns)


def _without_handovers(found: Sequence[_Exchange]) -> list[_Exchange]:
    """A run that leaves its question unanswered to a run with the same question handed it over, or was repeated."""
    kept: list[_Exchange] = []
    for exchange in found:
        if kept and _is_taken_over(kept[-1], exchange.question):
            last = kept.pop()
            notes = last.notes + exchange.notes
            exchange = replace(exchange, question=last.question, start_ns=last.start_ns, notes=notes)
        kept.append(exchange)
    return kept


def _is_taken_over(last: _Exchange, question: Said) -> bool:
    return last.question.text is not None and last.answer.text is None and question.text in (None, last.question.text)


def _of_run(root: Span, tree: Tree) -> list[_Exchange]:
    exchange = _Exchange(asked(root), answered(root.output), root.span_id, root.start_ns)
    if exchange.question != NOTHING and exchange.answer != NOTHING:
        return [exchange]
    inner = tree.below(root)
    calls = _spoken_to_user(inner, root, tree)
    groups = _by_user_message(calls)
    if len(groups) > 1 and exchange.question == NOTHING:
        return [_of_calls(group) for group in groups]
    runs = [span for span in inner if span.kind in RUNS and tree.asides(span) == tree.asides(root)]
    if exchange.question == NOTHING:
        _find_question(exchange, groups[0] if groups else (), runs)
    if exchange.answer == NOTHING and root.output is None and root.error is None:
        _find_answer(exchange, groups[-1] if groups else (), runs, tree)
    return [exchange]


def _spoken_to_user(inner: Sequence[Span], root: Span, tree: Tree) -> list[Span]:
    """Model calls of the run itself and of agents that it handed over to; not of those that it used as tools."""
    return [span for span in inner if span.kind is _LLM and tree.asides(span) == tree.asides(root)]


def _find_question(exchange: _Exchange, calls: Sequence[Span], runs: Sequence[Span]) -> None:
    for spans, source in ((calls, "the first model call"), (runs, "an inner agent")):
        found = next((said for span in spans if (said := asked(span)) != NOTHING), None)
        if found is not None:
            exchange.question = found
            exchange.notes.append(f"input taken from {source}")
            return


def _find_answer(exchange: _Exchange, calls: Sequence[Span], runs: Sequence[Span], tree: Tree) -> None:
    """From the model call or the agent that ended last, if it did not fail: what was said before is not the answer."""
    last_call = max(calls, key=_ended, default=None)
    last_run = max((run for run in runs if run.output is not None), key=_ended, default=None)
    for span, source in ((last_call, "the last model call"), (last_run, "an inner agent")):
        said = NOTHING if span is None or _failed(span, tree) else answered(span.output)
        if said != NOTHING:
            exchange.answer = said
            if said.text is not None:
                exchange.notes.append(f"final answer taken from {source}")
            return


def _failed(span: Span, tree: Tree) -> bool:
    """Whether a span or what it works for ended in an error."""
    above = tree.above(span)
    return span.error is not None or (above is not None and above.error is not None)


def _of_calls(group: Sequence[Span]) -> _Exchange:
    question = next((said for call in group if (said := asked(call)) != NOTHING), NOTHING)
    last = max(group, key=_ended)
    answer = NOTHING if last.error is not None else answered(last.output)
    return _Exchange(question, answer, last.span_id, min(call.start_ns for call in group))


def _ended(span: Span) -> tuple[int, int, str]:
    return span.end_ns, span.start_ns, span.span_id


def _by_user_message(calls: Sequence[Span]) -> list[list[Span]]:
    """Groups model calls by the user message that they answer: a new turn begins where the last turn's message stands
    in the history, and another one after it.

    Another prompt altogether (a router's, a summary's) stays in its turn.
    """
    groups: list[list[Span]] = []
    heard: list[str] = []
    for call in calls:
        said = user_messages(call.input or ())
        if not groups or _is_next_turn(call, said, heard):
            groups.append([call])
            heard = said
        else:
            groups[-1].append(call)
            heard = heard or said
    return groups


def _is_next_turn(call: Span, said: Sequence[str], heard: Sequence[str]) -> bool:
    if call.previous_response_id:  # the server keeps the history, the input holds only what is new
        return bool(said)
    return said != heard and bool(heard) and heard[-1] in said[:-1]
