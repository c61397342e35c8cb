"""Builds a closed trace in normal form from its evidence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, replace
from operator import attrgetter

from pandaeval_otel.base.names import all_bounded, bounded
from pandaeval_otel.dialects._common import agent_named
from pandaeval_otel.dialects._tool_values import FINAL_ANSWERS
from pandaeval_otel.model import (
    Kind,
    Message,
    Reasoning,
    Span,
    ToolCall,
    ToolDefinition,
    Trace,
    Trigger,
    Turn,
    Usage,
)
from pandaeval_otel.model.raw import RawLog
from pandaeval_otel.normal.blocked import blocked_by
from pandaeval_otel.normal.duplicates import merge_duplicates
from pandaeval_otel.normal.endings import BLOCKED, STOPPED, TRUNCATED, UNUSABLE, blocked_for, ending, side_by_side
from pandaeval_otel.normal.evaluations import evaluations
from pandaeval_otel.normal.evidence import Evidence
from pandaeval_otel.normal.parsed import with_parsed_answers
from pandaeval_otel.normal.session import MAX_ID_CHARS, conversations, response_links, session_id, user_id
from pandaeval_otel.normal.spans import normalize
from pandaeval_otel.normal.speech import current_turn, tool_requests
from pandaeval_otel.normal.tool_calls import tool_calls
from pandaeval_otel.normal.tree import RUNS, Tree
from pandaeval_otel.normal.turns import turns
from pandaeval_otel.normal.unread import unread
from pandaeval_otel.normal.utility import utility_of
from pandaeval_otel.wire.bounds import NOTE

# Module constants: an enum lookup costs several times as much, and every span needs one.
_AGENT, _EVALUATION, _LLM, _STEP, _TOOL = Kind.AGENT, Kind.EVALUATION, Kind.LLM, Kind.STEP, Kind.TOOL
_RUN_OR_CALL = RUNS | {Kind.LLM}
_JUDGING = frozenset({Kind.EVALUATION, Kind.LLM, Kind.EMBEDDING, Kind.STEP, Kind.OTHER})
_CALLS_APART = frozenset({"mcp", "gemini_cli", "plain"})
"""Dialects of tool calls that may be in a trace of their own."""
_SUMMARY, _COMPACTION = "summary", " (compaction)"
_FEW = 3
"""Maximum model calls in a utility trace: 1 plus retries."""
_DROPPED, _SAMPLED, _RESPONSE_ID = map(attrgetter, ("dropped_attributes", "sampled", "response_id"))
_GENAI = frozenset(Kind) - {Kind.OTHER, Kind.EVALUATION, Kind.STEP}


@dataclass(frozen=True, slots=True)
class Closing:
    trigger: Trigger = Trigger.FILE
    revision: int = 1
    late_spans: int = 0


def build_trace(evidence: Evidence, closing: Closing | None = None) -> Trace | None:
    """Return the trace, or ``None`` for evidence without spans. No span content makes it raise."""
    if not evidence.spans:
        return None
    by_span: dict[str, list[RawLog]] = {}
    for log in evidence.logs:
        by_span.setdefault(log.span_id, []).append(log)
    spans = [normalize(raw, by_span.get(raw.span_id, ())) for raw in evidence.spans]
    trace = trace_of(spans, evidence.digest, closing or Closing(), evidence.notes)
    _add_ending(trace, evidence, spans)
    trace.evaluations = evaluations(evidence.spans, evidence.logs)
    if note := unread(trace, evidence.spans):
        trace.notes = (*trace.notes, note)
    batch = side_by_side(trace)
    if batch:
        trace.runs = tuple([_run_of(trace, evidence, set(ids)) for ids in batch])
        trace.error = next((run.error for run in trace.runs if run.error is not None), None)
        shown = next((turn for turn in trace.turns if turn.assistant), trace.turns[0])
        trace.input, trace.output = shown.user, shown.assistant  # each question keeps its own answer
    return trace


def _add_ending(trace: Trace, evidence: Evidence, spans: Sequence[Span]) -> None:
    if trace.error is not None or not trace.output:
        trace.blocked = blocked_by(evidence.spans, evidence.logs, spans)
    how, detail = ending(trace, evidence.spans)
    if how == BLOCKED and trace.blocked is None:
        trace.blocked = blocked_for(detail)
    elif how == STOPPED:
        trace.stopped = detail
    elif how == TRUNCATED:
        trace.truncated = detail
    elif how == UNUSABLE and trace.error is None and not trace.output:
        trace.error = f"the model's answer was unusable: {detail}"


def _run_of(trace: Trace, evidence: Evidence, ids: Set[str]) -> Trace:
    raws = tuple([raw for raw in evidence.spans if raw.span_id in ids])
    logs = tuple([log for log in evidence.logs if log.span_id in ids])
    spans = [span for span in trace.spans if span.span_id in ids]
    run = trace_of(spans, trace.digest, Closing(trace.trigger, trace.revision))
    run.complete, run.fragment = trace.complete, trace.fragment
    _add_ending(run, replace(evidence, spans=raws, logs=logs), spans)
    return run


def trace_of(spans: Sequence[Span], digest: str, closing: Closing, notes: tuple[str, ...] = ()) -> Trace:
    """Build the trace of ``spans``: at least one, normal form, unique ids, any order."""
    whole = Tree(with_parsed_answers(spans))
    complete = any(not top.parent_id for top in whole.tops)
    missing = [top for top in whole.tops if top.parent_id]
    judged = _evaluations(whole)
    if judged:
        notes = (*notes, f"left out as spans of evaluators, not of the agent: {len(judged)}")
        whole = Tree(span for span in whole.spans if span.span_id not in judged)
    tree, folded = merge_duplicates(whole)
    roots = tree.roots
    root = _root(tree)
    models = [span for span in tree.spans if span.kind is _LLM]
    _choose(models, roots)
    conversation = turns(tree)
    question, answer = (
        (conversation.turns[0].user, conversation.turns[-1].assistant) if conversation.turns else (None, None)
    )
    notes = (*notes, *_compactions(models))
    session, user, calls = session_id(tree), user_id(tree), tool_calls(tree)
    names = _distinct([span.agent_name for span in tree.spans])
    agent, service, environment, *agents = all_bounded((_agent(root, tree), root.service, root.environment, *names))
    responses, continues = _links(tree, models, session, conversation.turns, (service, agent, user or ""))
    dialects = _distinct([name for span in tree.spans for name in span.dialects])
    return Trace(
        trace_id=spans[0].trace_id,
        spans=tree.spans,
        root_span_id=root.span_id,
        agent=agent,
        agents=tuple(agents),
        service=service,
        environment=environment or None,
        session_id=session,
        user_id=user,
        error=_error(roots or [root], tree, answer),
        complete=complete,
        fragment=not complete and bool(missing) and all(span.remote_parent for span in missing),
        trigger=_trigger(closing, complete and not missing),
        input=question,
        output=answer,
        ends_in_tool_call=conversation.pending,
        turns=conversation.turns,
        tool_calls=calls,
        tools=_tools(tree),
        reasoning=_reasoning([span for span in models if span.output] or roots),
        llm_calls=len(models),
        models=_distinct(span.model for span in models) or _distinct(span.model for span in tree.spans),
        # Counts of agent spans repeat the counts of the calls, or cover the agent's whole life.
        usage=_usage(models) or _usage(roots) or Usage(),
        dialects=_distinct(name for name in dialects if name != "plain") or dialects,
        dropped_attributes=sum(map(_DROPPED, spans)),
        notes=_notes(tree, (*notes, *conversation.notes, *_on_steps(root, calls)), folded),
        digest=digest,
        revision=closing.revision,
        late_spans=closing.late_spans,
        sampled=any(map(_SAMPLED, spans)),
        response_id=bounded(next(filter(None, map(_RESPONSE_ID, reversed(models))), ""), MAX_ID_CHARS),
        responses=responses,
        continues=continues,
        utility=_utility(tree, models, session is not None),
    )


def _root(tree: Tree) -> Span:
    tops = (span for span in tree.spans if not span.parent_id)
    if tree.roots:
        return tree.roots[0]
    return next(tops, tree.spans[0])


def _trigger(closing: Closing, ended: bool) -> Trigger:
    if closing.revision < 2 or closing.trigger not in (Trigger.IDLE, Trigger.ROOT_ENDED):
        return closing.trigger
    if ended:
        return Trigger.ROOT_ENDED
    return Trigger.IDLE


def _links(
    tree: Tree, models: Sequence[Span], session: str | None, turns: Sequence[Turn], whose: tuple[str, ...]
) -> tuple[tuple[str, ...], str]:
    responses, continues = response_links(
        [span for span in tree.spans if span.response_id or span.previous_response_id]
    )
    if session is not None:
        return responses[-1:], ""
    if continues:
        return responses, continues
    histories, continues = conversations(models, tree.roots, turns, whose)
    return histories + responses, continues


def _utility(tree: Tree, models: Sequence[Span], in_session: bool) -> str:
    if len(models) > _FEW or any(span.kind in _GENAI for span in tree.spans if span.kind is not _LLM):
        return ""
    kinds = {utility_of(span, in_session=in_session) for span in models}
    if len(kinds) == 1:
        return kinds.pop()
    return ""


def is_genai(trace: Trace) -> bool:
    """Return whether the trace contains agent work.

    False if it contains only framework steps without content, or only tool calls of an MCP server, MCP client, Gemini
    CLI or unknown program.
    """
    return any(
        (span.kind in _GENAI and not (span.kind is _TOOL and not _CALLS_APART.isdisjoint(span.dialects)))
        or (span.kind is _STEP and (span.input or span.output))
        for span in trace.spans
    )


def _choose(models: Sequence[Span], roots: Sequence[Span]) -> None:
    for place, span in enumerate(models, 1):
        choices = span.output or ()
        if len(choices) < 2 or not all(each.role == "assistant" and each.finish_reason for each in choices):
            continue
        later = [message for other in models[place : place + _FEW] for message in other.input or ()]
        later += [message for root in roots if root is not span for message in root.output or ()]
        later_gists = {_gist(message) for message in later}
        chosen = [each for each in choices if _gist(each) in later_gists]
        if len(chosen) == 1:
            span.output = (chosen[0],)


def _gist(message: Message) -> tuple[str, ...]:
    return (message.text, *[request.id or request.name for request in message.tool_requests])


def _compactions(models: Sequence[Span]) -> tuple[str, ...]:
    made = [span for span in models if utility_of(span, in_session=True) == _SUMMARY] if len(models) > 1 else []
    for span in made:
        span.name = f"{span.name.removesuffix(_COMPACTION)}{_COMPACTION}"
    if made:
        return (f"{len(made)} model call{'s' if len(made) > 1 else ''} only summarised the history",)
    return ()


def _evaluations(tree: Tree) -> set[str]:
    """Return the IDs of evaluation spans that contain only evaluations and model calls, and of all spans below them."""
    evaluations = [span for span in tree.spans if span.kind is _EVALUATION]
    if not evaluations:
        return set()
    acting = tree.around(span for span in tree.spans if _acts(span))
    below = [span for span in evaluations if span.span_id not in acting]
    judged: set[str] = set()
    while below:
        span = below.pop()
        if span.span_id not in judged:
            judged.add(span.span_id)
            below += tree.children(span)
    if len(judged) < len(tree.spans):
        return judged
    return set()


def _acts(span: Span) -> bool:
    """Return whether a span does other work than evaluations, or calls a tool."""
    return span.kind not in _JUDGING or any(message.tool_requests for message in span.output or ())


def _on_steps(root: Span, calls: Sequence[ToolCall]) -> tuple[str, ...]:
    if not calls or root.kind is not _LLM or any(call.span_id != root.span_id for call in calls):
        return ()
    earlier = len(calls) - len(tool_requests(root.output or ()))
    if earlier <= 0:
        return ()
    return (f"tool calls of earlier traces, read from the message history: {earlier}",)


def _agent(root: Span, tree: Tree) -> str:
    """Return the root agent's name: its own, the first agent's below, the trace's only agent, else the workflow or
    service. Agents called by tools do not count.
    """
    if root.agent_name:
        return root.agent_name
    depth = tree.asides(root)
    inner = [span for span in tree.below(root) if span.agent_name and span.kind is not _TOOL]
    named = [span for span in inner if tree.asides(span) == depth]
    first = next((span for span in named if span.kind is _AGENT), named[0] if named else None)
    if first is not None:
        return first.agent_name
    others = [span for span in tree.spans if span.agent_name and span.kind is not _TOOL]
    names = {span.agent_name for span in others if tree.asides(span) <= depth}
    if len(names) == 1:
        return names.pop()
    # The workflow's name in a span name of the conventions' form.
    called = root.name.removeprefix("invoke_workflow ").removesuffix(".workflow")
    is_named = root.kind is Kind.WORKFLOW and called != root.name
    return (agent_named(called) if is_named else "") or root.service


def _error(roots: Sequence[Span], tree: Tree, answer: str | None) -> str | None:
    """Return the last run's error; retried failures and copies of a tool's error do not count.

    If a workflow has neither error nor answer, the error of its last agent or model call counts.
    """
    last = roots[-1]
    if last.error is not None and answer and _repeats_tool(last, tree):
        return None
    if last.error is not None or answer:
        return last.error
    inner = [span for span in tree.below(last) if span.kind in _RUN_OR_CALL and tree.asides(span) == tree.asides(last)]
    return max(inner, key=lambda span: (span.end_ns, -tree.depth(span)), default=last).error


def _repeats_tool(root: Span, tree: Tree) -> bool:
    """Return whether the run's error is a copy of a tool's, after which a model spoke."""
    inner = tree.below(root)
    failed = [span.end_ns for span in inner if span.kind is _TOOL and span.error == root.error]
    spoke = [span.start_ns for span in inner if span.kind is _LLM and any(each.text for each in span.output or ())]
    return bool(failed) and max(spoke, default=0) >= max(failed)


def _tools(tree: Tree) -> tuple[ToolDefinition, ...]:
    """Return each offered tool's fullest definition. Lists agents if they differ."""
    tools: dict[tuple[str, str], ToolDefinition] = {}
    had: dict[tuple[str, str], dict[str, None]] = {}
    offered = [(tool, tree.agent(span)) for span in tree.spans for tool in span.tools or ()]
    for tool, agent in offered:
        if tool.name in FINAL_ANSWERS:
            continue
        key = (tool.name, agent)
        if key not in tools:
            key = (tool.name, "")
        known = tools.get(key)
        if known is not None and agent not in had[key] and _differ(known, tool):
            key, known = (tool.name, agent), None
        if known is None or (known is not tool and _fullness(tool) > _fullness(known)):
            tools[key] = tool
        had.setdefault(key, {})[agent] = None
    everybody = {agent for agents in had.values() for agent in agents}
    if all(len(agents) == len(everybody) for agents in had.values()):
        return tuple(tools.values())
    return tuple([replace(tool, agents=tuple(filter(None, had[key]))) for key, tool in tools.items()])


def _differ(one: ToolDefinition, other: ToolDefinition) -> bool:
    return None not in (one.parameters, other.parameters) and one.parameters != other.parameters


def _fullness(tool: ToolDefinition) -> tuple[bool, bool]:
    return bool(tool.description), tool.parameters is not None


def _reasoning(speakers: Sequence[Span]) -> tuple[str, ...]:
    if not speakers:
        return ()
    message_groups = [current_turn(speakers[0].input or ())]
    message_groups += [span.output or () for span in speakers]
    if len(speakers) > 1:
        message_groups.append(current_turn(speakers[-1].input or ()))
    thoughts: list[str] = []
    for messages in message_groups:
        for message in messages:
            for part in message.parts:
                if type(part) is Reasoning:
                    thoughts.append(part.text)  # noqa: PERF401 - usually empty
    return _distinct(thoughts)


def _usage(spans: Sequence[Span]) -> Usage | None:
    stated = [span.usage for span in spans if span.usage is not None]
    if stated:
        return sum(stated, Usage())
    return None


def _notes(tree: Tree, notes: Iterable[str], folded: int) -> tuple[str, ...]:
    all_notes = [*notes, *(note for span in tree.spans for note in span.notes)]
    dropped = sum(map(_DROPPED, tree.spans))
    if folded:
        all_notes.append(f"duplicate spans of the same call, merged: {folded}")
    if dropped:
        by = "by a limit" if NOTE in all_notes else "by the SDK's limit (OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT)"
        all_notes.append(f"{dropped} attributes were dropped {by}")
    return _distinct(all_notes)


def _distinct(values: Iterable[str]) -> tuple[str, ...]:
    return tuple([value for value in dict.fromkeys(values) if value])
