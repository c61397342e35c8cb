"""The facts that scores use, checked against captured sessions.

Unemitted facts are allowed; invented facts are errors.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pandaeval_otel.model import ToolCall, Turn as ReadTurn
from pandaeval_otel.model.raw import RawSpan
from tests.golden.conformance_capture import Recorded, any_in, object_signatures, runs, squeezed, value_signatures
from tests.golden.conformance_deviations import (
    AGENT_NAMES,
    ENDS_AT_FAILURE,
    OWN_SESSIONS,
    RUNS_AGAIN,
    SPREAD_CALLS,
    TOKENS_ON_RUNS,
)
from tests.golden.conformance_truth import Call, Capture, Turn

HANDOVER = re.compile(r"^(transfer_to|handoff)")
_INPUT_TOKENS = re.compile(r"(^|\.)(input_tokens|prompt_tokens|inputTokens|promptTokens|token_count\.prompt)$")
_OUTPUT_TOKENS = re.compile(
    r"(^|\.)(output_tokens|completion_tokens|outputTokens|completionTokens|token_count\.completion)$"
)
_USAGE_JSON = re.compile(r"usage_details$")
_USAGE_REPR = re.compile(r"^llm\.[^.]+\.usage$")
"""LiteLLM writes usage as Python's repr."""


@dataclass(frozen=True)
class Verdict:
    """``emitted``: in the capture. ``missed``: unread or invented facts."""

    emitted: bool
    missed: tuple[str, ...] = ()

    @property
    def mark(self) -> str:
        return "✗" if self.missed else "✓" if self.emitted else "–"


@dataclass(frozen=True)
class Seen:
    """A capture, its truth and its reading."""

    capture: Capture
    recorded: Sequence[Recorded]

    @cached_property
    def text(self) -> str:
        return "".join(one.text for one in self.recorded)

    @cached_property
    def runs(self) -> list[list[Recorded]]:
        return list(runs(self.recorded))

    @cached_property
    def turns(self) -> list[ReadTurn]:
        return [turn for run in self.runs for turn in run[-1].trace.turns]

    @cached_property
    def calls(self) -> list[ToolCall]:
        """Return calls by turn, from the answering trace."""
        asking = self.runs if self.capture.set in SPREAD_CALLS else [run[-1:] for run in self.runs]
        traces = [one.trace for run in asking for one in run]
        return [call for trace in traces for call in trace.tool_calls if not self._handover(call)]

    @cached_property
    def steps(self) -> list[list[Call]]:
        """Return the true calls in the capture."""
        again = RUNS_AGAIN.get(self.capture.name, 1)
        steps = [step for turn in self.capture.truth.turns for step in turn.steps * again]
        if self.capture.name in ENDS_AT_FAILURE:
            steps = steps[: 1 + next(at for at, step in enumerate(steps) if any(call.error for call in step))]
        return [[call for call in step if self.called(call)] for step in steps]

    def _handover(self, call: ToolCall) -> bool:
        return self.capture.truth.handover and HANDOVER.match(call.name) is not None

    @cached_property
    def aligned(self) -> list[tuple[Call, ToolCall | None]]:
        """Return each true call with the call read; order within a step is free."""
        pairs: list[tuple[Call, ToolCall | None]] = []
        at = 0
        for step in self.steps:
            here = self.calls[at : at + len(step)]
            at += len(step)
            for call in step:
                match = next((c for c in here if c.name == call.name and c.arguments == call.arguments), None)
                match = match or next((c for c in here if c.name == call.name), None)
                if match is not None:
                    here.remove(match)
                pairs.append((call, match))
        return pairs

    @cached_property
    def uncalled(self) -> set[str]:
        """Return tools that are only available."""
        return set(self.capture.truth.tools) - {call.name for call in self.capture.truth.calls}

    def text_of_turn(self, index: int) -> str:
        if len(self.runs) == len(self.capture.truth.turns) and all(one.genai for one in self.recorded):
            return "".join(one.text for one in self.runs[index])
        return self.text

    def called(self, call: Call) -> bool:
        """Return whether the capture shows this call."""
        return any(call.name in one.names for one in self.recorded) or any_in(
            object_signatures(dict(call.arguments)), self.text
        )


def _texts(
    seen: Seen, of_truth: Callable[[Turn], Sequence[str | None]], read: Callable[[ReadTurn], str | None]
) -> Verdict:
    turns = seen.capture.truth.turns
    emitted = [_first_emitted(of_truth(turn), seen.text_of_turn(index)) for index, turn in enumerate(turns)]
    if len(seen.turns) != len(turns):
        count = f"{len(seen.turns)} turns instead of {len(turns)}"
        return Verdict(any(emitted), (count,) if any(emitted) else ())
    missed = []
    for index, (turn, given) in enumerate(zip(turns, seen.turns, strict=True)):
        text = read(given)
        wanted = of_truth(turn)
        if text in wanted or (text is None and not emitted[index]):
            continue
        if text is not None and any(want and want == text.strip() for want in wanted):
            continue  # some frameworks end the text with a line break
        if not emitted[index] and text is not None and any(want and want.startswith(text) for want in wanted):
            continue  # cut by a length limit
        missed.append(f"turn {index + 1}: {_short(text)} instead of {_short(wanted[0] if wanted else None)}")
    return Verdict(any(emitted), tuple(missed))


def _first_emitted(texts: Sequence[str | None], seen_text: str) -> bool:
    return any(text is not None and squeezed(text) in seen_text for text in texts)


def user_input(seen: Seen) -> Verdict:
    return _texts(seen, lambda turn: (turn.user,), lambda turn: turn.user)


def final_output(seen: Seen) -> Verdict:
    return _texts(seen, lambda turn: turn.finals, lambda turn: turn.assistant)


def calls(seen: Seen) -> Verdict:
    given = [call.name for call in seen.calls]
    wanted = [call.name for step in seen.steps for call in step]
    if not wanted:
        return Verdict(False, (f"made up: {given}",) if given else ())
    if len(given) != len(wanted):
        return Verdict(True, (f"{given} instead of {wanted}",))
    return Verdict(True, tuple(f"{call.name} not in its place" for call, match in seen.aligned if match is None))


def arguments(seen: Seen) -> Verdict:
    missed = []
    emitted = False
    for call, match in seen.aligned:
        if not any_in(object_signatures(dict(call.arguments)), seen.text):
            if match is not None and match.has_arguments and match.arguments != call.arguments:
                missed.append(f"{call.name}: made up {_short(match.arguments)}")
            continue
        emitted = True
        if match is None or match.arguments != call.arguments:
            missed.append(f"{call.name}: {_short(match and match.arguments)} instead of {dict(call.arguments)}")
    return Verdict(emitted, tuple(missed))


def results(seen: Seen) -> Verdict:
    missed = []
    emitted = False
    for call, match in seen.aligned:
        signatures = [squeezed(call.error)] if call.error else value_signatures(call.result)
        if not call.known or not any_in(signatures, seen.text):
            continue
        emitted = True
        recorded = (
            squeezed(f"{json.dumps(match.result, ensure_ascii=False, default=str)} {match.error}") if match else ""
        )
        if not any_in(signatures, recorded):
            missed.append(
                f"{call.name}: {_short(match and match.result)} instead of {_short(call.result or call.error)}"
            )
    return Verdict(emitted, tuple(missed))


def tools(seen: Seen) -> Verdict:
    """Check available tools, if uncalled tools appear."""
    wanted = set(seen.capture.truth.tools)
    given = {tool.name for one in seen.recorded for tool in one.trace.tools}
    if not seen.uncalled or not all(name in seen.text for name in wanted):
        return Verdict(False)
    return Verdict(True, tuple(f"tool {name} is not known" for name in sorted(wanted - given)))


def parameters(seen: Seen) -> Verdict:
    missed = []
    known = {tool.name: tool.parameters for one in seen.recorded for tool in one.trace.tools if tool.parameters}
    truth = seen.capture.truth.tools
    if not seen.uncalled or not all(f"properties:{{{truth[name][0]}:{{" in seen.text for name in seen.uncalled):
        return Verdict(False)
    for name, names in truth.items():
        schema = known.get(name)
        properties = schema.get("properties", {}) if isinstance(schema, Mapping) else {}
        if not set(names) <= set(properties):
            missed.append(f"{name}: {_short(schema)} has not all of {names}")
    return Verdict(True, tuple(missed))


def model(seen: Seen) -> Verdict:
    emitted = [one for one in seen.recorded if any_in(seen.capture.truth.models, one.text)]
    missed = [
        f"models {one.trace.models}"
        for one in emitted
        if not any(name in given for name in seen.capture.truth.models for given in one.trace.models)
    ]
    return Verdict(bool(emitted), tuple(missed))


def tokens(seen: Seen) -> Verdict:
    wanted = _spent(seen)
    given = (
        sum(one.trace.usage.input for one in seen.recorded),
        sum(one.trace.usage.output for one in seen.recorded),
    )
    if wanted == (0, 0):
        return Verdict(False)
    return Verdict(True, () if given == wanted else (f"{given} instead of {wanted}",))


def session(seen: Seen) -> Verdict:
    given = [one.trace.session_id for one in seen.recorded if one.genai]
    if squeezed(seen.capture.truth.session) in seen.text:
        wrong = sorted({str(name) for name in given if name != seen.capture.truth.session})
        return Verdict(True, tuple(f"session {name}" for name in wrong))
    if seen.capture.set.startswith(OWN_SESSIONS):
        return Verdict(True, () if len(set(given)) == 1 and given[0] else (f"sessions {given}",))
    return Verdict(False, tuple(f"made up: session {name}" for name in given if name is not None))


def agent(seen: Seen) -> Verdict:
    wanted = AGENT_NAMES.get(seen.capture.set, seen.capture.truth.agents)
    emitted = [one for one in seen.recorded if not one.names.isdisjoint(wanted)]
    missed = [f"agent {one.trace.agent}" for one in emitted if one.trace.agent not in wanted]
    return Verdict(bool(emitted), tuple(missed))


def errors(seen: Seen) -> Verdict:
    truth = seen.capture.truth
    failed = [one.trace.error for one in seen.recorded if one.genai and one.trace.error is not None]
    if truth.raises:
        marked = any(span.status_code == 2 for one in seen.recorded for span in one.evidence.spans)
        return Verdict(marked, ("the run's failure is not seen",) if marked and not failed else ())
    missed = [f"made up: {_short(error)}" for error in failed if not truth.failure]
    broken = [(call, match) for call, match in seen.aligned if call.error and squeezed(call.error) in seen.text]
    for call, match in broken:
        if match is not None and call.error not in f"{match.error} {match.result}":
            missed.append(f"{call.name}: error {_short(match.error)}, result {_short(match.result)}")
    return Verdict(bool(broken), tuple(missed))


def reasoning(seen: Seen) -> Verdict:
    wanted = {
        thought for turn in seen.capture.truth.turns for thought in turn.reasoning if squeezed(thought) in seen.text
    }
    given = "\n".join(thought for one in seen.recorded for thought in one.trace.reasoning)
    return Verdict(
        bool(wanted), tuple(f"not read: {_short(thought)}" for thought in sorted(wanted) if thought not in given)
    )


FACTS: Mapping[str, Callable[[Seen], Verdict]] = {
    "input": user_input,
    "output": final_output,
    "calls": calls,
    "arguments": arguments,
    "results": results,
    "tools": tools,
    "parameters": parameters,
    "model": model,
    "tokens": tokens,
    "session": session,
    "agent": agent,
    "errors": errors,
    "reasoning": reasoning,
}


def _spent(seen: Seen) -> tuple[int, int]:
    spent: dict[str, tuple[tuple[int, int], RawSpan]] = {}
    for one in seen.recorded:
        spans = {span.span_id: span for span in one.evidence.spans}
        usage = {key: used for key, span in spans.items() if (used := _usage(span)) != (0, 0)}
        outer = {above for key in usage for above in _above(key, spans)}
        if seen.capture.set in TOKENS_ON_RUNS:
            outer = usage.keys() - outer
        for key, used in usage.items():
            twin = any(used == known and _overlap(spans[key], span) for known, span in spent.values())
            if key not in outer and not twin:
                response = next((str(v) for k, v in spans[key].attributes.items() if k.endswith("response.id")), key)
                spent.setdefault(response, (used, spans[key]))
    return sum(used for (used, _), _ in spent.values()), sum(made for (_, made), _ in spent.values())


def _overlap(one: RawSpan, other: RawSpan) -> bool:
    return one.start_ns < other.end_ns and other.start_ns < one.end_ns


def _usage(span: RawSpan) -> tuple[int, int]:
    used = made = 0
    for key, value in span.attributes.items():
        if _USAGE_JSON.search(key):
            details = json.loads(str(value))
            return int(details.get("input", 0)), int(details.get("output", 0)) + int(details.get("output_reasoning", 0))
        if _USAGE_REPR.search(key):
            details = ast.literal_eval(str(value))
            return int(details["prompt_tokens"]), int(details["completion_tokens"])
        if _INPUT_TOKENS.search(key):
            used = max(used, int(value))
        elif _OUTPUT_TOKENS.search(key):
            made = max(made, int(value))
    return used, made


def _above(span_id: str, spans: Mapping[str, RawSpan]) -> list[str]:
    found: list[str] = []
    at = spans[span_id].parent_id
    while at in spans and at not in found:
        found.append(at)
        at = spans[at].parent_id
    return found


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 90 else f"{text[:60]}…{text[-25:]}"
