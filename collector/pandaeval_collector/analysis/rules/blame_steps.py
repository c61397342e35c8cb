"""What speaks for each step of a run that it broke the run: features for :mod:`..stats.blame_model`, by code alone.

A step is a span that could go wrong: what the user asked for (the outermost span), an agent, a model's call, a tool's
call, a retrieval. Words are those of service conversations in English; elsewhere their features stay 0.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import log1p
from typing import TypeVar

from pandaeval_collector.analysis.rules._failures import error_of
from pandaeval_collector.analysis.rules._verbs import Nature, nature
from pandaeval_collector.analysis.rules.course import DONE, REFUSAL, TO_PEOPLE, stated_values
from pandaeval_collector.analysis.rules.response_recovery import known_calls, lost_at, was_to_change
from pandaeval_otel.model import Kind, Span, ToolCall, Trace

MOST_STEPS = 400
"""Of a longer run the first and the last ones are looked at, half as many each."""
_LOOKED_AT = 50_000
_MOST_FAILED = 20
"""Failed calls whose causes are looked for."""
_STEPS = frozenset({Kind.AGENT, Kind.WORKFLOW, Kind.LLM, Kind.TOOL, Kind.RETRIEVAL})
_YES = re.compile(r"\b(?:yes|yeah|yep|sure|ok|okay|confirm\w*|proceed|go ahead|please do|correct|agree)\b", re.I)
_NUMBER = re.compile(r"\d+")
Features = dict[str, float]
T = TypeVar("T")


_OF_CALLS = {
    "fails": "failed",
    "fails for good": "failed for good",
    "is the first to fail": "was the first to fail",
    "unsaid argument": "has an argument that nobody said",
    "changes": "changes something",
    "changes first": "was the first to change something",
    "changes last": "was the last to change something",
    "changes without a yes": "changes something without a yes of the user",
    "hands over": "hands over",
    "gives nothing": "gave nothing",
    "repeats": "repeats an earlier one",
    "result unused": "has a result that nothing refers to",
    "result misses": "shows no result",
    "feeds a call that fails": "fed a call that failed",
    "changed what a failed call speaks of": "changed what a failed call speaks of",
    "changed what a failed call is about": "changed what a failed call is about",
}
_OF_STEPS = {
    "request": "it is what was asked for",
    "error": "it ended in an error",
    "last before error": "it is the last step before the run's error",
    "refuses": "it refuses or apologises",
    "no text, no call": "it says nothing and calls nothing",
    "says done, nothing changed": "it says that something was done, and nothing was",
    "after a failed call": "it follows a call that failed",
    "loop, first round": "the loop begins here",
    "loop, second round": "the loop's second round",
    "named later": "a failing metric names it",
    "last model call": "it is the last word of the model",
    "first model call": "it is the first word of the model",
}
_NAMES = (" names it first", " fails the answer")


def told(name: str) -> str:
    """Describes a feature in words; ``""`` for one that means nothing to people, such as a length."""
    call = name.removeprefix("asked: ")
    if call in _OF_CALLS:
        return f"{'the call' if call == name else 'it asked for a call that'} {_OF_CALLS[call]}"
    return name if name.endswith(_NAMES) else _OF_STEPS.get(name, "")


@dataclass(slots=True)
class BlameStep:
    """A step of a run. ``kind``, ``tool``, ``agent``: what the step is; ``features``: by name, missing ones are 0."""

    span_id: str
    kind: str
    tool: str = ""
    agent: str = ""
    features: Features = field(default_factory=dict)

    def mark(self, name: str, value: float = 1.0) -> None:
        self.features[name] = max(value, self.features.get(name, 0.0))


def steps(trace: Trace, named: Mapping[str, Sequence[str]]) -> list[BlameStep]:
    """Returns the steps of a trace in order. ``named``: by metric, the spans that its failing result names."""
    spans = _ends([span for span in trace.spans if span.kind in _STEPS or span.span_id == trace.root_span_id])
    found = {s.span_id: BlameStep(s.span_id, _kind(s, trace), s.tool_name, s.agent_name) for s in spans}
    models = [span for span in spans if span.kind is Kind.LLM]
    _place(spans, found, trace)
    _say(models, found, trace)
    _findings(spans, found, named, trace.root_span_id, models[-1].span_id if models else "")
    _calls(trace, models, found)
    if not named and True not in known_calls(trace).wrong:
        _nothing_failed(found.values())
    return [*found.values()]


def _ends(items: Sequence[T]) -> Sequence[T]:
    """Returns all items, or the first and last ones of more than ``MOST_STEPS``."""
    half = MOST_STEPS // 2
    return items if len(items) <= MOST_STEPS else [*items[:half], *items[-half:]]


def _kind(span: Span, trace: Trace) -> str:
    if span.span_id == trace.root_span_id and span.kind in (Kind.AGENT, Kind.WORKFLOW):
        return "request"
    return span.kind.value if span.kind in _STEPS else "agent"


def _place(spans: Sequence[Span], found: Mapping[str, BlameStep], trace: Trace) -> None:
    for at, span in enumerate(spans):
        step = found[span.span_id]
        step.features[step.kind] = 1.0
        step.features["late"] = at / max(1, len(spans) - 1)
        if span.error is not None:
            step.mark("error")
    last = [span for span in spans if span.span_id != trace.root_span_id]
    if last and trace.error is not None:
        found[last[-1].span_id].mark("last before error")


def _say(models: Sequence[Span], found: Mapping[str, BlameStep], trace: Trace) -> None:
    if not models:
        return
    found[models[0].span_id].mark("first model call")
    found[models[-1].span_id].mark("last model call")
    asking = {_asker(call, models) for call in _ends(trace.tool_calls)}
    wrong = known_calls(trace).wrong
    changes = any(was_to_change(trace, call) for call, bad in zip(trace.tool_calls, wrong, strict=True) if not bad)
    for span in models:
        said = "\n".join(message.text for message in span.output or ())[:_LOOKED_AT]
        step = found[span.span_id]
        if span.output is not None and not said.strip():
            step.mark("no text")
            if span.span_id not in asking:
                step.mark("no text, no call")
        if REFUSAL.search(said):
            step.mark("refuses")
        if DONE.search(said) and not changes:
            step.mark("says done, nothing changed")
        step.features["numbers"] = log1p(len(_NUMBER.findall(said)))
        step.features["length"] = log1p(len(said)) / 8


def _findings(
    spans: Sequence[Span], found: Mapping[str, BlameStep], named: Mapping[str, Sequence[str]], root: str, answers: str
) -> None:
    """Marks the steps that failing results name; the last model call for results that name only the root."""
    order = [span.span_id for span in spans]
    for metric, ids in named.items():
        here = [span_id for span_id in order if span_id in ids and span_id != root]
        if not here:
            if answers:
                found[answers].mark(f"{metric} fails the answer")
            continue
        if metric == "tool_loop":
            found[here[0]].mark("loop, first round")
            if len(here) > 1:
                found[here[1]].mark("loop, second round")
        else:
            found[here[0]].mark(f"{metric} names it first")
            for span_id in here[1:]:
                found[span_id].mark("named later")


def _nothing_failed(found: Iterable[BlameStep]) -> None:
    """Adds features of a step's place, which weighs differently where nothing failed and no metric names a step."""
    for step in found:
        for name in ("request", "first model call", "last model call", "asked: changes", "asked: changes last"):
            if name in step.features:
                step.mark(f"nothing failed: {name}")


def _calls(trace: Trace, models: Sequence[Span], found: Mapping[str, BlameStep]) -> None:
    known, kept = known_calls(trace), _ends(range(len(trace.tool_calls)))
    calls, wrong = [trace.tool_calls[at] for at in kept], [known.wrong[at] for at in kept]
    for_good = {*lost_at(trace)} if any(wrong) else set()
    lost = {place for place, at in enumerate(kept) if at in for_good}
    changing = [was_to_change(trace, call) for call in calls]
    asked = [_asker(call, models) for call in calls]
    given = [stated_values(call.arguments) for call in calls]
    gave = [
        [] if bad or not call.has_result else stated_values(call.result) for call, bad in zip(calls, wrong, strict=True)
    ]
    marks = _marks(trace, calls, wrong, lost, changing, given, gave)
    for at in _again(calls, [known.spelled[at] for at in kept]):
        marks[at].append("repeats")
    for call, asker, its in zip(calls, asked, marks, strict=True):
        step = found.get(call.span_id)
        if step is not None:
            step.tool = step.tool or call.name
            for name in its:
                step.mark(name)
            if call.has_result:
                step.features["result of size"] = log1p(len(str(call.result))) / 10
        if asker in found and asker != call.span_id:
            for name in its:
                found[asker].mark(f"asked: {name}")
            found[asker].tool = found[asker].tool or call.name
    by_asker: dict[str, list[int]] = {}
    for place, asker in enumerate(asked):
        by_asker.setdefault(asker, []).append(place)
    for at, span in enumerate(models):
        before = [place for place in by_asker.get(models[at - 1].span_id, ()) if at]
        size = sum(len(str(calls[place].result)) for place in before if calls[place].has_result)
        found[span.span_id].features["after a result of size"] = log1p(size) / 10
        if any(wrong[place] for place in before):
            found[span.span_id].mark("after a failed call")


def _marks(
    trace: Trace,
    calls: Sequence[ToolCall],
    wrong: Sequence[bool],
    lost: set[int],
    changing: Sequence[bool],
    given: Sequence[Sequence[str]],
    gave: Sequence[Sequence[str]],
) -> list[list[str]]:
    """Returns the names of the features of each call."""
    marks: list[list[str]] = [[] for _ in calls]
    later = "\n".join(turn.assistant or "" for turn in trace.turns).lower()[:_LOOKED_AT]
    for at in range(len(calls) - 1, -1, -1):
        if gave[at] and not any(value in later for value in gave[at]):
            marks[at].append("result unused")
        later = f"{' '.join(given[at])} {later}"[:_LOOKED_AT]
    known = _words_before(trace)
    yes = any(_YES.search(turn.user or "") for turn in trace.turns[-1:])
    first_change = next((at for at, change in enumerate(changing) if change), None)
    last_change = max((at for at, change in enumerate(changing) if change), default=None)
    for at, call in enumerate(calls):
        own = marks[at]
        if wrong[at]:
            own.append("fails")
            own += ["fails for good"] if at in lost else []
            own += ["is the first to fail"] if True not in wrong[:at] else []
        own += [name for name, holds in (
            ("unsaid argument", any(value not in known for value in given[at])),
            ("changes", changing[at]),
            ("changes first", at == first_change),
            ("changes last", at == last_change),
            ("changes without a yes", changing[at] and not yes),
            ("hands over", nature(call.name) is Nature.HAND_OVER or bool(TO_PEOPLE.search(call.name))),
            ("gives nothing", call.has_result and not gave[at] and not wrong[at]),
            ("result misses", not call.has_result and call.error is None),
        ) if holds]  # fmt: skip
        known = f"{known} {' '.join(given[at])} {str(call.result).lower() if call.has_result else ''}"[-_LOOKED_AT:]
    for at in [at for at, bad in enumerate(wrong) if bad][:_MOST_FAILED]:
        for source in _sources(given[at], gave[:at]):
            marks[source].append("feeds a call that fails")
        told = error_of(calls[at]).lower()
        for source in range(at):
            if changing[source] and not wrong[source] and any(value in told for value in given[source]):
                marks[source].append("changed what a failed call speaks of")
        for source in range(at):
            if changing[source] and not wrong[source] and {*given[source]} & {*given[at]} and changing[at]:
                marks[source].append("changed what a failed call is about")
    return marks


def _again(calls: Sequence[ToolCall], spelled: Sequence[str | None]) -> Iterator[int]:
    """Yields the indexes of calls that equal an earlier one."""
    seen: set[tuple[str, str | None]] = set()
    for at, (call, arguments) in enumerate(zip(calls, spelled, strict=False)):
        if (call.name, arguments) in seen:
            yield at
        seen.add((call.name, arguments))


def _sources(given: Sequence[str], gave: Sequence[Sequence[str]]) -> Iterator[int]:
    """Yields, for each value in ``given``, the index of the latest earlier result that holds it."""
    for value in given:
        for at in range(len(gave) - 1, -1, -1):
            if value in gave[at]:
                yield at
                break


def _words_before(trace: Trace) -> str:
    """Returns the words of users, instructions and the first input, in lower case."""
    parts = [turn.user or "" for turn in trace.turns]
    first = next((span for span in trace.spans if span.input), None)
    if first is not None:
        parts += [str(part) for message in first.input or () for part in message.parts]
    parts += [span.system for span in trace.spans[:3] if span.system]
    return "\n".join(parts)[-_LOOKED_AT:].lower()


def asked_calls(trace: Trace) -> list[str]:
    """Returns for each call of a trace the id of the model call that asked for it; ``""`` where none did."""
    models = [span for span in trace.spans if span.kind is Kind.LLM]
    return [_asker(call, models) for call in trace.tool_calls]


def _asker(call: ToolCall, models: Sequence[Span]) -> str:
    """Returns the id of the model call that asked for a tool call: the latest that had ended when it began."""
    best = ""
    for span in models:
        if span.span_id == call.span_id:
            return span.span_id
        if span.end_ns <= call.start_ns:
            best = span.span_id
    return best
