"""The case file model; ``pandaeval cases schema`` prints its JSON schema.

Sources: Agent Evaluation Framework (case structure), and the Agentic metric (tool expectations).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, Literal, get_args

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, field_validator, model_validator

from pandaeval_collector.base.section import Duration, join_lines
from pandaeval_lab.cases.agent_entry import AgentEntry
from pandaeval_lab.cases.fields import CasePart, JsonSchema, Name, Pattern, Share

Compared = Literal["exact", "text", "number", "unordered", "any"]
Part = Literal["selection", "parameters", "sequence", "utilization"]
WEIGHTS: tuple[str, ...] = get_args(Part)
_SUM = 1e-6


class ExpectedCall(CasePart):
    """An expected call of a tool."""

    tool_name: Name = Field(validation_alias=AliasChoices("tool_name", "name"))
    """Name of the tool, exactly as it is called."""
    parameters: dict[str, Any] | None = None
    """The expected arguments. If omitted, only the tool counts."""
    acceptable: dict[str, list[Any]] = {}
    """Further acceptable values, by argument."""
    optional: tuple[Name, ...] = ()
    """Arguments that the call can omit."""
    compare_args: tuple[Name, ...] | dict[str, Compared] | None = None
    """The arguments to compare; null: all. As a map, also how. exact; any: it must exist. text: case, spaces and
    punctuation do not matter. number: 1, 1.0 and "1" are equal. unordered: a list in any order."""
    step: int | None = None
    """Calls with the same step can come in any order."""


class ExpectedOutcome(BaseModel):
    """The expected outcome of the trial. Your own keys are fields of the end state."""

    model_config = ConfigDict(extra="allow", frozen=True, use_attribute_docstrings=True, json_schema_extra=join_lines)

    tools_called: tuple[Name, ...] | None = None
    """Names of the tools to call, in order; expected_tools takes precedence."""
    end_state: dict[str, Any] = {}
    """Fields that the end state must have, nested."""


class OutputFormat(CasePart):
    """Form of the answer. The answer must meet all conditions."""

    type: Literal["text", "json"] = "text"
    """json: the whole answer is a JSON value, also in a Markdown code block."""
    json_schema: JsonSchema | None = None
    """JSON schema of the answer. The answer must be JSON."""
    pattern: Pattern | None = None
    """Regular expression (RE2) that must match somewhere in the answer."""
    contains: tuple[str, ...] = ()
    """Texts that must all appear in the agent's answers; case and thousands separators are ignored."""
    excludes: tuple[str, ...] = ()
    """Texts that must not appear in the answers."""


class CountedCalls(CasePart):
    """The calls of a trial that the graders of tools use."""

    tools: Literal["all", "changing"] | tuple[Name, ...] = "all"
    """all; changing: tools that change something, by their definitions or names; or a list of tool names."""
    failed: bool = True
    """Whether failed calls also count."""


class Interaction(CasePart):
    """Expectations of an interaction: a user message and the following steps."""

    input: str | None = None
    """The user's message. `cases run` sends it if every interaction has an input."""
    expected_answer: str | None = None
    """Expected content of the answer. A judge compares the meaning."""
    expected_tools: tuple[ExpectedCall, ...] | None = None
    """The expected calls; []: no call."""


class Mock(CasePart):
    """Reply of a mocked tool: exactly one of result, results, error and function."""

    when: dict[str, Any] = {}
    """Arguments that a call must have, among others; {}: any."""
    result: Any = None
    """Result of every call."""
    results: tuple[Any, ...] = ()
    """Results of consecutive calls; the last result repeats."""
    error: Name | None = None
    """The call fails, and the agent gets this message."""
    function: Name | None = None
    """module:function or ./file.py:function answers the call."""
    delay: Duration = 0.0
    """Delay of the answer, such as 2s."""
    times: Annotated[int, Field(ge=1)] | None = None
    """Maximum number of calls that this mock answers in an attempt."""

    @model_validator(mode="after")
    def _says_one_thing(self) -> Mock:
        given_fields = sorted({"result", "results", "error", "function"} & self.model_fields_set)
        if len(given_fields) != 1:
            given = " and ".join(given_fields) or "nothing"
            raise ValueError(f"has {given}; write exactly one of result, results, error and function")
        if given_fields == ["results"] and not self.results:
            raise ValueError("results is empty; write a list, such as [pending, done]")
        return self


class RecordedCall(CasePart):
    """A recorded call, for replay."""

    tool_name: Name
    parameters: Any = None
    result: Any = None
    error: str | None = None


class RecordedTool(CasePart):
    """A tool that the agent had."""

    name: Name
    description: str = ""
    parameters: Any = None


class Recorded(CasePart):
    """The recorded run from which the case was made, without secrets."""

    trace_ids: tuple[str, ...] = ()
    """IDs of its traces, which are a trial of the case."""
    tools: tuple[RecordedTool, ...] = ()
    """The tools that the agent had."""
    messages: tuple[str, ...] = ()
    """Messages of the user, in order."""
    calls: tuple[RecordedCall, ...] = ()
    """Calls with their results, for replay."""
    answer: str | None = None


class Scenario(CasePart):
    """A user that a model simulates (``pandaeval cases run --simulate``)."""

    goal: Name
    """Goal of the user; the conversation ends when it is met or given up."""
    profile: str = ""
    """Who the user is, and how the user talks."""
    knowledge: tuple[Name, ...] = ()
    """All facts that the user can give to the agent."""
    first_message: Name | None = None
    """First user message; null: the model writes it."""
    max_turns: Annotated[int, Field(ge=1, le=100)] = 10
    conversations: Annotated[int, Field(ge=1, le=1000)] = 1
    """Number of conversations. Each conversation is a trial. --trials can set a higher number."""


class AbsentFinding(CasePart):
    """A finding that makes a trial of the case fail."""

    metric: Name
    """The metric that reports it, such as trace.response."""
    label: Name
    """Its label, such as false_success."""
    reason: str = ""
    """The description that a judge reads, if no code checks the metric."""


class Case(CasePart):
    """A task with expectations of a run."""

    id: Name
    """Unique among all cases. Spans name the case in pandaeval.case.id."""
    description: str = ""
    source: str = ""
    """Where the case comes from, such as an incident."""
    kind: Literal["regression", "capability"] = "regression"
    """regression: worked before; capability: not expected to work yet."""
    agent: Name | None = None
    """Agent that tries this case, by its name in agents."""
    inputs: dict[str, Any] = {}
    """Input of the agent. task: the user message; a trace with the same message is a trial."""
    expected_outcome: ExpectedOutcome = ExpectedOutcome()
    expected_tools: tuple[ExpectedCall, ...] | None = None
    """The expected calls, in order; []: no call."""
    counted_calls: CountedCalls = CountedCalls()
    tool_match: Literal["all", "within"] = "all"
    """all: the agent must make exactly the expected calls. within: the agent can make only these calls, or none."""
    tool_sequence_matters: bool = True
    tool_weights: dict[
        Literal["selection", "parameters", "sequence", "utilization"], Annotated[float, Field(ge=0)]
    ] = {}
    """Weights of the four parts of tool_correctness, with the sum 1. Default: 0.25 each."""
    results_must_be_used: bool = False
    """Whether the answer must use tool results; a judge decides."""
    results_used: bool | None = None
    """If true, the answer counts as using the results when results_must_be_used is true and there is no judge."""
    absent: tuple[AbsentFinding, ...] = ()
    """Findings that fail a trial: the reason why the case was made."""
    required_order: tuple[Name, ...] = ()
    """Tools that must all be called, each for the first time in this order."""
    forbidden_tools: tuple[Name, ...] = ()
    """Tools that must not be called; * matches any text."""
    tool_schemas: dict[str, JsonSchema] = {}
    """JSON schemas of arguments, by tool. Default: the schemas in the trace."""
    minimum_steps: Annotated[int, Field(ge=1)] | None = None
    """Minimum number of calls for the task. If null, the number of expected calls."""
    exit_code: int | None = None
    """The expected exit code of the run."""
    output_format: OutputFormat | None = None
    expected_answer: str | None = None
    """Expected content of the answer. A judge compares the meaning."""
    knowledge: tuple[str, ...] = ()
    """Facts that the judge can use."""
    interactions: tuple[Interaction, ...] = ()
    """Expected interactions of a conversation, in order."""
    graders: tuple[Name, ...] = ()
    """Additional graders that must pass: names of metrics of level trial, or your own functions as module:function or
    ./file.py:function."""
    thresholds: dict[str, Share] = {}
    """Thresholds of this case by grader."""
    end_state_from: str | None = None
    """Function that gets the trial and returns its end state: module:function or ./file.py:function."""
    open: tuple[Literal["expected_tools", "expected_answer"], ...] = ()
    """Fields that you still have to fill in. Until then, no trial passes or fails."""
    recorded: Recorded | None = None
    mocks: dict[Name, tuple[Mock, ...]] = {}
    """Mocks by tool. The first mock that matches a call answers."""
    unmocked: Literal["refuse", "pass", "recorded"] | None = None
    """Handling of a call without a matching mock. refuse (default with mocks): the call fails. pass: the tool itself
    runs. recorded: the call gets the result of a call in recorded.calls with equal arguments, in order, else it
    fails."""
    scenario: Scenario | None = None
    """A user that a model simulates, instead of fixed messages."""

    @model_validator(mode="before")
    @classmethod
    def _shorthands(cls, given: Any) -> Any:
        if not isinstance(given, Mapping):
            return given
        fields = dict(given)
        if isinstance(fields.get("grader"), str) and "graders" not in fields:
            fields["graders"] = [fields.pop("grader")]
        if isinstance(fields.get("output_format"), str):
            fields["output_format"] = {"type": fields["output_format"]}
        if isinstance(mocks := fields.get("mocks"), Mapping):
            fields["mocks"] = {name: each if isinstance(each, list) else [each] for name, each in mocks.items()}
        return fields

    @field_validator("tool_weights")
    @classmethod
    def _sum_up(cls, value: dict[str, float]) -> dict[str, float]:
        if value and (set(value) != set(WEIGHTS) or abs(math.fsum(value.values()) - 1.0) > _SUM):
            raise ValueError(f"give all of {', '.join(WEIGHTS)}, with the sum 1")
        return value

    @field_validator("open")
    @classmethod
    def _is_open(cls, value: tuple[str, ...], info: Any) -> tuple[str, ...]:
        filled = [name for name in value if info.data.get(name) is not None]
        if filled:
            raise ValueError(f"{filled[0]} has a value; remove it from open")
        return value

    @property
    def task(self) -> str | None:
        task = self.inputs.get("task")
        return task.strip() if isinstance(task, str) and task.strip() else None

    @property
    def is_mocked(self) -> bool:
        """Whether mocks answer calls in attempts."""
        return bool(self.mocks) or self.unmocked is not None

    @property
    def end_state(self) -> Mapping[str, Any]:
        return {**(self.expected_outcome.model_extra or {}), **self.expected_outcome.end_state}

    @property
    def expected(self) -> tuple[ExpectedCall, ...] | None:
        """The expected calls; ``None`` if the case expects nothing of tools."""
        if self.expected_tools is not None:
            return self.expected_tools
        named = self.expected_outcome.tools_called
        return None if named is None else tuple(ExpectedCall(tool_name=name) for name in named)


class Suite(CasePart):
    """A file of cases."""

    name: str = ""
    agents: dict[Name, AgentEntry] = {}
    """Agents by name, for --agent and for agent of cases; the first is the default."""
    graders_from: str | None = None
    """Module or ./file.py of the functions that graders name by their bare names."""
    cases: tuple[Case, ...] = Field(min_length=1)
