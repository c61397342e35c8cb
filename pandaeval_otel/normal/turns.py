"""Who said what: the turns of a trace, its input and its final answer.

A turn is a user message and all that the outermost agent does up to the next one. Model calls belong to the turn of
the last user message in their input, counted, so that two equal messages are two turns.
"""

from __future__ import annotations

from collections.abc import Sequence

from pandaeval_otel.model import Kind, Media, Message, Span, Turn
from pandaeval_otel.normal.tool_calls import is_user_turn
from pandaeval_otel.normal.tree import Tree


def turns(tree: Tree) -> tuple[tuple[Turn, ...], bool, tuple[str, ...]]:
    """The turns in order, whether the last one ends in a pending tool call, and notes on what had to be inferred."""
    found: list[Turn] = []
    notes: list[str] = []
    pending = False
    roots = tree.roots()
    if roots and all(root.kind is Kind.LLM for root in roots):
        groups = _by_user_message(roots)
    else:
        groups = []
        for root in roots:
            if root.kind in (Kind.AGENT, Kind.WORKFLOW):
                turn, pending, said = _turns_of_run(root, tree)
                found.extend(turn)
                notes.extend(said)
            elif root.kind is Kind.LLM:
                groups.extend(_by_user_message([root]))
    for group in groups:
        turn_of_group, pending = _turn_of_calls(group)
        found.append(turn_of_group)
    return tuple(found), pending, tuple(dict.fromkeys(notes))


def _turns_of_run(root: Span, tree: Tree) -> tuple[list[Turn], bool, list[str]]:
    notes: list[str] = []
    groups = _by_user_message(_outermost_calls(root, tree))
    user, media = _asked(root)
    answer, pending = _answer(root.output)
    if len(groups) > 1 and user is None:
        several = [_turn_of_calls(group) for group in groups]
        return [turn for turn, _ in several], several[-1][1], notes
    first, last = (groups[0], groups[-1]) if groups else ([], [])
    if user is None and first:
        user, media = _asked(first[0])
        if user is not None:
            notes.append("input taken from the first model call")
    if user is None:
        user, media, note = _from_inner_run(root, tree, asked=True)
        notes.extend(note)
    span_id = root.span_id
    if answer is None and last and root.output is None:
        answer, pending, _ = _last_answer(last)
        if answer is not None:
            notes.append("final answer taken from the last model call")
    if answer is None and not pending and root.output is None:
        answer, _, note = _from_inner_run(root, tree, asked=False)
        notes.extend(note)
    return [Turn(user, answer, span_id, media_only=media and user is None)], pending, notes


def _from_inner_run(root: Span, tree: Tree, asked: bool) -> tuple[str | None, bool, list[str]]:
    """An outer workflow without content above an agent that has it: take the first input, the last answer."""
    inner = [span for span in tree.below(root) if span.kind in (Kind.AGENT, Kind.WORKFLOW)]
    for span in inner if asked else sorted(inner, key=lambda span: span.end_ns, reverse=True):
        if any(above.kind is Kind.TOOL for above in tree.ancestors(span)):
            continue
        text, media = _asked(span) if asked else (_answer(span.output)[0], False)
        if text is not None:
            return text, media, [f"{'input' if asked else 'final answer'} taken from an inner agent"]
    return None, False, []


def _outermost_calls(root: Span, tree: Tree) -> list[Span]:
    """Model calls of the run itself and of agents that it handed over to; not of agents that it used as tools."""
    calls = []
    for span in tree.below(root):
        if span.kind is not Kind.LLM:
            continue
        above = [a.kind for a in tree.ancestors(span) if a.start_ns >= root.start_ns or a.span_id == root.span_id]
        inside = above[: above.index(root.kind) + 1] if root.kind in above else above
        if Kind.TOOL not in inside:
            calls.append(span)
    return calls


def _by_user_message(calls: Sequence[Span]) -> list[list[Span]]:
    """Groups model calls by the ordinal of the last user message in their input.

    An input may hold only what is new since the last call (the server keeps the history): it stays in its turn.
    """
    groups: list[list[Span]] = []
    ordinal = -1
    for call in calls:
        said = sum(1 for message in _joined(call.input or ()) if is_user_turn(message))
        if not groups or said > ordinal > 0:
            groups.append([call])
        else:
            groups[-1].append(call)
        ordinal = max(ordinal, said)
    return groups


def _turn_of_calls(group: Sequence[Span]) -> tuple[Turn, bool]:
    user, media = _asked(group[0])
    answer, pending, span_id = _last_answer(group)
    return Turn(user, answer, span_id, media_only=media and user is None), pending


def _last_answer(group: Sequence[Span]) -> tuple[str | None, bool, str]:
    """The text of the last call (by end) that answered without asking for a tool; its span id."""
    by_end = sorted(group, key=lambda span: (span.end_ns, span.start_ns))
    for call in reversed(by_end):
        answer, pending = _answer(call.output)
        if answer is not None or pending:
            return answer, pending, call.span_id
    return None, False, by_end[-1].span_id if by_end else ""


def _asked(span: Span) -> tuple[str | None, bool]:
    """The last user message of a span's input, and whether it was media without words."""
    if span.input is None:
        return None, False
    if not span.input:
        return "", False
    for message in reversed(_joined(span.input)):
        if is_user_turn(message):
            text = message.text
            has_media = any(isinstance(part, Media) for part in message.parts)
            return (text, False) if text or not has_media else (None, True)
    return None, False


def _joined(messages: Sequence[Message]) -> list[Message]:
    """Consecutive user messages are one message."""
    joined: list[Message] = []
    for message in messages:
        if joined and message.role == "user" == joined[-1].role and is_user_turn(message) and is_user_turn(joined[-1]):
            joined[-1] = Message("user", (*joined[-1].parts, *message.parts))
        else:
            joined.append(message)
    return joined


def _answer(output: Sequence[Message] | None) -> tuple[str | None, bool]:
    """The last text without a tool call that is still pending, and whether there is one pending."""
    if output is None:
        return None, False
    if not output:
        return "", False
    answered = any(message.tool_responses for message in output)
    for message in reversed(output):
        if message.role not in ("assistant", ""):
            continue
        if message.tool_requests and not answered:
            return None, True
        if message.text:
            return message.text, False
    empty = any(message.role in ("assistant", "") and not message.parts for message in output)
    return ("" if empty else None), False
