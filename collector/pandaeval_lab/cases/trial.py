"""Trials, and the matching of traces to cases."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any

import orjson

from pandaeval_collector.analysis.rules._failures import failed
from pandaeval_collector.analysis.rules._verbs import Nature, nature
from pandaeval_collector.base.runtime.modules import ModuleLoadError, load_module, source_digest
from pandaeval_collector.base.score import Assumed, Finding, NotCapturedError, Score, Unscored, Why
from pandaeval_collector.base.untrusted.trace_attributes import stated
from pandaeval_collector.scoring.evaluator.one_metric import is_untraced
from pandaeval_lab.cases.arguments import in_best_order, within
from pandaeval_lab.cases.model import Case, CountedCalls, ExpectedCall, Suite
from pandaeval_otel.base import semconv
from pandaeval_otel.base.names import bounded
from pandaeval_otel.model import ToolCall, Trace, Trigger

# The user's functions in cases: graders, and sources of end states.
#
# A grader gets a :class:`pandaeval_lab.cases.Trial` and returns ``True`` or ``False``, a number from 0 to
# 1, a pair of one of these with a reason, or a ``Score``, ``Assumed`` or ``Unscored``.
Function = Callable[[Any], Any]
END_STATE, EXIT_CODE, PLAN = "pandaeval.end_state", "pandaeval.exit_code", "pandaeval.plan"
RUN_ERROR, SIMULATED, SIMULATOR_FAILED = "pandaeval.run.error", "pandaeval.simulated", "pandaeval.simulator.failed"
"""Attributes of ``pandaeval cases run``: the agent failed or took too long; a model simulated the user; why the
simulated user failed."""
TURN = "pandaeval.turn"
"""Baggage: the number of the turn, from 0."""
RUN_SCOPE, MOCK_SCOPE, MOCK_CALLS = "pandaeval_lab", "pandaeval_lab.mocks", "pandaeval.mock.calls"
"""Scope of the command's spans; attribute with the calls, as JSON, that mocks answered while the span was current."""
_NO_EXPECTATION = {"description", "source", "recorded", "mocks", "unmocked", "scenario"}
_MOST_UNKNOWN = 100
_MOST_SAID = 80


@cache
def function(spec: str) -> Function:
    """Load the function ``module:name`` or ``./file.py:name``. Raises :class:`ModuleLoadError`."""
    module, _, name = spec.rpartition(":")
    if not module or not name.isidentifier():
        raise ModuleLoadError(f"{spec}: write module:function, or ./file.py:function")
    found = getattr(load_module(module), name, None)
    if not callable(found):
        raise ModuleLoadError(f"{spec}: {module} has no function {name}")
    made: Function = found
    return made


def source_of(spec: str) -> str:
    """Return 12 hex digits of a function's source; ``""`` without source."""
    try:
        return source_digest(function(spec))
    except (ValueError, AttributeError):  # a partial, an instance, a function of C
        return ""


def finding(answer: Any) -> Finding | None:
    """Convert a grader's answer to a finding. Raises ``TypeError``."""
    reason = ""
    if isinstance(answer, tuple) and len(answer) == 2:
        answer, reason = answer[0], str(answer[1])
    if answer is None or isinstance(answer, Score | Assumed | Unscored):
        return answer
    if isinstance(answer, bool | int | float):
        return Score(float(answer), reason or ("passed" if answer else "not passed"))
    raise TypeError(f"a grader returns True, False or a number from 0 to 1, not a {type(answer).__name__}")


# Interactions of a trial: the user's message, the answer, and the calls between them.
@dataclass(frozen=True, slots=True)
class Interacted:
    """An interaction of a trial. ``answer``: ``None`` if missing."""

    answer: str | None
    trial: Trial
    made: Sequence[ToolCall]

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The calls that count. Raises ``NotCapturedError`` if the agent sent no spans."""
        self.trial.check_calls()
        return self.trial.counted(self.made)


def interactions(trial: Trial) -> list[Interacted]:
    """Return an interaction per user message, in order: per trace if the case expects as many, else per turn."""
    if len(trial.traces) == len(trial.case.interactions):
        return [Interacted(trace.output, trial, trace.tool_calls) for trace in trial.traces]
    return [each for trace in trial.traces for each in _turns(trial, trace)]


def _turns(trial: Trial, trace: Trace) -> Iterator[Interacted]:
    if len(trace.turns) < 2:
        yield Interacted(trace.output, trial, trace.tool_calls)
        return
    starts = {span.span_id: span.start_ns for span in trace.spans}
    left = list(trace.tool_calls)
    *ended, last = trace.turns
    for turn in ended:
        end = starts.get(turn.span_id, math.inf)
        yield Interacted(turn.assistant, trial, [call for call in left if call.start_ns <= end])
        left = [call for call in left if call.start_ns > end]
    yield Interacted(last.assistant, trial, left)


@dataclass(frozen=True)
class Trial:
    """An attempt at a case. ``name``: its number or name; ``traces``: by start, at least one."""

    case: Case
    name: str
    traces: tuple[Trace, ...]

    @property
    def last(self) -> Trace:
        return self.traces[-1]

    @cached_property
    def all_calls(self) -> tuple[ToolCall, ...]:
        """All tool calls, in order. Raises ``NotCapturedError`` if the agent sent no spans."""
        self.check_calls()
        return tuple(call for trace in self.traces for call in trace.tool_calls)

    @cached_property
    def is_untraced(self) -> bool:
        """Whether the agent sent no spans for a turn, so that its calls are not known."""
        return any(is_untraced(trace) for trace in self.traces)

    @cached_property
    def is_whole_session(self) -> bool:
        """Whether ``pandaeval cases run`` made the trial. Then each trial is a new session."""
        return any(span.scope == RUN_SCOPE for trace in self.traces for span in trace.spans)

    def check_calls(self) -> None:
        if self.is_untraced:
            raise NotCapturedError("the agent sent no spans, so its tool calls are not known")

    @cached_property
    def calls(self) -> tuple[ToolCall, ...]:
        """The calls that count for this case (``counted_calls``)."""
        return self.counted(self.all_calls)

    def counted(self, calls: Sequence[ToolCall]) -> tuple[ToolCall, ...]:
        how = self.case.counted_calls
        return tuple(
            c for c in calls if counts_tool(c.name, how, self._hints.get(c.name)) and (how.failed or not failed(c))
        )

    @cached_property
    def _hints(self) -> Mapping[str, bool | None]:
        hints: dict[str, bool | None] = {}
        for trace in self.traces:
            for tool in trace.tools:
                hints.setdefault(tool.name, tool.read_only)
        return hints

    @cached_property
    def called(self) -> tuple[str, ...]:
        return tuple(call.name for call in self.calls)

    @cached_property
    def expected(self) -> tuple[ExpectedCall, ...] | None:
        return self.counted_expected(self.case.expected, self.calls if self.case.tool_match == "within" else ())

    def counted_expected(
        self, expected: Sequence[ExpectedCall] | None, calls: Sequence[ToolCall]
    ) -> tuple[ExpectedCall, ...] | None:
        """Return the expected calls that count.

        With ``tool_match: within``, return the matching expected call for each of ``calls``.
        """
        if expected is None:
            return None
        how, hints = self.case.counted_calls, self._hints
        counted = tuple(each for each in expected if counts_tool(each.tool_name, how, hints.get(each.tool_name)))
        return within(counted, calls) if self.case.tool_match == "within" else counted

    def expected_names(self, actual: Sequence[str]) -> list[str]:
        return in_best_order(self.expected or (), actual)

    @cached_property
    def schemas(self) -> Mapping[str, Any]:
        """JSON schemas of arguments by tool, from the case, else the traces."""
        declared = {tool.name: tool.parameters for trace in self.traces for tool in trace.tools if tool.parameters}
        return {**declared, **self.case.tool_schemas}

    @property
    def task(self) -> str | None:
        return said_first(self.traces[0])

    @property
    def answer(self) -> str | None:
        return self.last.output

    @cached_property
    def answers(self) -> tuple[str, ...]:
        texts: list[str | None] = []
        for trace in self.traces:
            by_turn = [turn.assistant for turn in trace.turns]
            texts += by_turn if trace.output in by_turn else [*by_turn, trace.output]
        return tuple(text for text in texts if text)

    def stated(self, name: str) -> Any:
        """Return the last value of an attribute ``pandaeval.…``, JSON parsed, or ``None``."""
        found = [span.attributes[name] for trace in self.traces for span in trace.spans if name in span.attributes]
        if not found or not isinstance(found[-1], str):
            return found[-1] if found else None
        try:
            return orjson.loads(found[-1])
        except ValueError:
            return found[-1]

    @property
    def mock_calls(self) -> tuple[dict[str, Any], ...]:
        """Calls that mocks answered or refused, in order of their spans."""
        stated = (span.attributes.get(MOCK_CALLS) for trace in self.traces for span in trace.spans)
        return tuple(orjson.loads(call) for calls in stated if isinstance(calls, list | tuple) for call in calls)

    @property
    def past_mocks(self) -> list[str]:
        """Tools that bypassed mocks, an entry per call."""
        if self.is_untraced or not self.case.is_mocked or not self.is_whole_session:
            return []
        left = Counter(call.name for call in self.all_calls)
        left.subtract(call["tool"] for call in self.mock_calls)
        return [*left.elements()]

    @property
    def spoilt(self) -> Unscored | None:
        """The failure of the simulated user, which makes the trial unusable."""
        why = self.stated(SIMULATOR_FAILED)
        return why and Unscored(Why.SIMULATOR_FAILED, f"the simulated user failed: {why}")

    @cached_property
    def evidence(self) -> str:
        expects = self.case.model_dump(mode="json", exclude=_NO_EXPECTATION)
        parts: list[Any] = [
            [trace.digest for trace in self.traces],
            _digest(orjson.dumps(expects, option=orjson.OPT_SORT_KEYS)),
        ]
        if self.case.end_state_from is not None:
            parts.append(source_of(self.case.end_state_from))
        return _digest(orjson.dumps(parts))


def _digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()


@dataclass(frozen=True, slots=True)
class Graded:
    """A grader's outcome. ``success``: ``None`` if unknown; ``gates``: the case declares the grader."""

    name: str
    layer: str
    success: bool | None
    gates: bool
    reason: str


@dataclass(frozen=True, slots=True)
class TrialContext:
    """Further inputs of a grader.

    ``judged``: findings of the judge; ``graded``: outcomes for ``trial_correct``; ``end_tokens``: answers that declare
    the end.
    """

    threshold: float
    judged: Mapping[str, Finding] = field(default_factory=dict)
    graded: tuple[Graded, ...] = ()
    thresholds: Mapping[str, float] = field(default_factory=dict)
    end_tokens: tuple[str, ...] = ()


def counts_tool(name: str, how: CountedCalls, read_only: bool | None = None) -> bool:
    """Return whether calls of a tool count. ``read_only``: its definition's hint."""
    match how.tools:
        case "all":
            return True
        case "changing":
            return nature(name, read_only) is Nature.CHANGING
        case names:
            return name in names


def said_first(trace: Trace) -> str | None:
    first = next((turn.user for turn in trace.turns if turn.user), None)
    return first or trace.input


@dataclass(frozen=True, slots=True)
class TrialTrace:
    """A trace to read again when its trial is graded."""

    trace_id: str
    session_id: str | None
    trigger: Trigger


@dataclass(frozen=True, slots=True)
class Attempt:
    """A trial whose traces are not read yet."""

    case: Case
    name: str
    traces: Sequence[TrialTrace]


class TrialMatcher:
    """Groups traces into trials, without content, by start time.

    A trace belongs to the case that its spans name; else to the case that was made from it; else to the case of its
    session; else to the only case whose ``inputs.task`` is its input. The traces of a trial have the same case and the
    same ``pandaeval.trial``, else the same session; otherwise each trace is a trial.
    """

    def __init__(self, suite: Suite) -> None:
        self._cases = {case.id: case for case in suite.cases}
        self._named = {bounded(case.id): case for case in suite.cases}
        self._by_task: dict[str, list[Case]] = {}
        self._frozen: dict[str, Case] = {}
        for case in suite.cases:
            self._frozen.update(dict.fromkeys(case.recorded.trace_ids if case.recorded else (), case))
            if case.task is not None:
                self._by_task.setdefault(case.task, []).append(case)
        self._sessions: dict[str, tuple[Case, str]] = {}
        self._gathered: dict[tuple[str, str], list[TrialTrace]] = {}
        self.unknown: dict[str, int] = {}
        """Number of traces that name a nonexistent case, by case id, for the first 100 ids."""
        self.ambiguous = 0
        """Traces without a case whose input is the task of several cases."""
        self.unmatched = 0
        """Traces of no case."""
        self.unmatched_said = ""
        """The first words of the user in such a trace, shortened."""

    def add(self, traces: Iterable[Trace]) -> None:
        for trace in traces:
            found = self.case_of(trace)
            if found is None:
                self.unmatched += 1
                self.unmatched_said = self.unmatched_said or (said_first(trace) or "").strip()[:_MOST_SAID]
                continue
            trial, session = (found[0].id, found[1]), trace.session_id
            self._gathered.setdefault(trial, []).append(TrialTrace(trace.trace_id, session, trace.trigger))
            if session is not None:
                self._sessions[session] = found

    def take_spoilt(self, trace: Trace) -> bool:
        """Record a trace whose simulated user failed. Returns whether it is such a trace."""
        is_spoilt = any(SIMULATOR_FAILED in span.attributes for span in trace.spans)
        self.add([trace] if is_spoilt else [])
        return is_spoilt

    def attempts(self) -> list[Attempt]:
        order = {id_: at for at, id_ in enumerate(self._cases)}
        keys = sorted(self._gathered, key=lambda key: order[key[0]])
        return [Attempt(self._cases[id_], name, self._gathered[id_, name]) for id_, name in keys]

    @property
    def without_trial(self) -> list[str]:
        tried = {id_ for id_, _ in self._gathered}
        return [id_ for id_ in self._cases if id_ not in tried]

    def case_of(self, trace: Trace) -> tuple[Case, str] | None:
        named = stated(trace, semconv.PANDAEVAL_CASE_ID)[0]
        case = self._named.get(named) if named else self._frozen.get(trace.trace_id)
        if named and case is None and (named in self.unknown or len(self.unknown) < _MOST_UNKNOWN):
            self.unknown[named] = self.unknown.get(named, 0) + 1
        if not named and case is None:
            if trace.session_id in self._sessions:
                return self._sessions[trace.session_id]
            texts = (text.strip() for text in (trace.input, said_first(trace)) if text is not None)
            same = next((self._by_task[text] for text in texts if text in self._by_task), [])
            self.ambiguous += len(same) > 1
            case = same[0] if len(same) == 1 else None
        name = stated(trace, semconv.PANDAEVAL_TRIAL)[0] or trace.session_id or trace.trace_id
        return None if case is None else (case, name)
