"""The case file model; ``pandaeval cases schema`` prints its JSON schema.

Sources: Agent Evaluation Framework (case structure), and the Agentic metric (tool expectations).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, field_validator, model_validator

from pandaeval_collector.base.section import Duration
from pandaeval_lab.cases.agent_entry import AgentEntry
from pandaeval_lab.cases.fields import CasePart, JsonSchema, Name, Pattern, Share, UserPrompt

Compared = Literal["exact", "text", "number", "unordered", "any"]
WEIGHTS = ("selection", "parameters", "sequence", "utilization")
_SUM = 1e-6


class ExpectedCall(CasePart):
    """A call of a tool that is expected."""

    tool_name: Name = Field(
        validation_alias=AliasChoices("tool_name", "name"), description="Name of the tool, exactly as it is called."
    )
    parameters: dict[str, Any] | None = Field(
        default=None, description="The arguments that the call is to have; left out: only the tool counts."
    )
    acceptable: dict[str, list[Any]] = Field(
        default={}, description="By argument, further values that are as good as the one in parameters."
    )
    optional: tuple[Name, ...] = Field(default=(), description="Arguments that may be left out.")
    compare_args: tuple[Name, ...] | dict[str, Compared] | None = Field(
        default=None,
        description="The arguments to compare; null: all. As a map, also how. exact; any: it must exist. text: case, "
        'spaces and punctuation do not matter. number: 1, 1.0 and "1" are equal. unordered: a list in any order.',
    )
    step: int | None = Field(default=None, description="Calls of equal step may come in any order among each other.")


class ExpectedOutcome(BaseModel):
    """What there is to be when the trial is over. Keys of the user's own are fields of the end state."""

    model_config = ConfigDict(extra="allow", frozen=True)

    tools_called: tuple[Name, ...] | None = Field(
        default=None,
        description="Names of the tools to call, in order; expected_tools takes precedence.",
    )
    end_state: dict[str, Any] = Field(default={}, description="Fields that the end state must have, nested.")


class OutputFormat(CasePart):
    """What the answer has to look like; everything that is said has to hold."""

    type: Literal["text", "json"] = Field(default="text", description="json: the whole answer is one JSON value.")
    json_schema: JsonSchema | None = Field(default=None, description="JSON schema of the answer, which is JSON.")
    pattern: Pattern | None = Field(
        default=None, description="Regular expression that is found somewhere in the answer."
    )
    contains: tuple[str, ...] = Field(
        default=(),
        description="Texts that must all appear in the agent's answers; case and thousands separators are ignored.",
    )
    excludes: tuple[str, ...] = Field(default=(), description="Texts that must not appear in the answers.")


class CountedCalls(CasePart):
    """Which calls of a trial the graders of tools look at."""

    tools: Literal["all", "changing"] | tuple[Name, ...] = Field(
        default="all",
        description="all; changing: tools that change something, by their definitions or names; or the names of some.",
    )
    failed: bool = Field(default=True, description="Whether calls that failed count, too.")


class Interaction(CasePart):
    """Expectations of an interaction: a user message and the following steps."""

    input: str | None = Field(default=None, description="The user's message, for people.")
    expected_answer: str | None = Field(default=None, description="What the answer should say; a judge compares.")
    expected_tools: tuple[ExpectedCall, ...] | None = Field(default=None, description="The calls to make; []: none.")


class Mock(CasePart):
    """What a tool answers in place of the tool itself: one of result, results, error and function."""

    when: dict[str, Any] = Field(default={}, description="Arguments that a call must have, among others; {}: any.")
    result: Any = Field(default=None, description="Result of every call.")
    results: tuple[Any, ...] = Field(default=(), description="Results of consecutive calls; the last result repeats.")
    error: Name | None = Field(default=None, description="The call fails, and the agent gets this message.")
    function: Name | None = Field(default=None, description="module:function or ./file.py:function answers the call.")
    delay: Duration = Field(default=0.0, description="Delay of the answer, such as 2s.")
    times: Annotated[int, Field(ge=1)] | None = Field(default=None, description="Calls of an attempt, at most.")

    @model_validator(mode="after")
    def _says_one_thing(self) -> Mock:
        said = sorted({"result", "results", "error", "function"} & self.model_fields_set)
        if len(said) != 1:
            given = " and ".join(said) or "nothing"
            raise ValueError(f"has {given}; write one of result, results, error and function")
        if said == ["results"] and not self.results:
            raise ValueError("results is empty; write a list, such as [pending, done]")
        return self


class RecordedCall(CasePart):
    """A call as it was recorded, for replay."""

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
    """The run that a case was frozen from, without secrets."""

    trace_ids: tuple[str, ...] = Field(default=(), description="Its traces, which are a trial of the case.")
    tools: tuple[RecordedTool, ...] = Field(default=(), description="The tools that the agent had.")
    messages: tuple[str, ...] = Field(default=(), description="What the user said, in order.")
    calls: tuple[RecordedCall, ...] = Field(default=(), description="Calls with their results, for replay.")
    answer: str | None = None


class Persona(CasePart):
    """A kind of user. A text is a profile."""

    profile: str = Field(description="Who the user is, and how the user talks.")
    knowledge: tuple[Name, ...] = Field(default=(), description="Facts that the user can tell the agent.")

    @model_validator(mode="before")
    @classmethod
    def _shorthand(cls, given: Any) -> Any:
        return {"profile": given} if isinstance(given, str) else given


class Scenario(CasePart):
    """A user whom a model plays (``pandaeval cases run --simulate``)."""

    goal: Name = Field(description="Goal of the user; the conversation ends when it is met or given up.")
    persona: Name | None = Field(default=None, description="Persona of the user, by its name in personas.")
    profile: str = Field(default="", description="Who the user is, and how the user talks.")
    knowledge: tuple[Name, ...] = Field(default=(), description="All that the user can tell the agent, fact by fact.")
    first_message: Name | None = Field(default=None, description="First user message; null: the model writes it.")
    max_turns: Annotated[int, Field(ge=1, le=100)] = 10
    conversations: Annotated[int, Field(ge=1, le=1000)] = Field(
        default=1, description="Conversations, each a trial; --trials may ask for more."
    )
    thresholds: dict[Name, Annotated[float, Field(ge=0)]] = Field(
        default={},
        description="Least mean over all its conversations by metric, in the metric's scale, such as helpfulness: 3.5; "
        "the scenario fails below.",
    )
    fail_on_error_severity: Literal["low", "medium", "high", "critical"] | None = Field(
        default=None, description="Least severity of a group of failures in its conversations that fails it."
    )

    user_prompt: UserPrompt | None = Field(default=None, description="As user_prompt of the file.")

    @property
    def has_gates(self) -> bool:
        """Whether a threshold or severity can fail it."""
        return bool(self.thresholds or self.fail_on_error_severity)


class AbsentFinding(CasePart):
    """A finding that no trial of the case may have."""

    metric: Name = Field(description="The metric that reports it, such as trace.response.")
    label: Name = Field(description="Its label, such as false_success.")
    reason: str = Field(default="", description="The description that a judge reads, if no code checks the metric.")


class Case(CasePart):
    """A task with expectations of a run."""

    id: Name = Field(description="Unique among all cases; spans name it by pandaeval.case.id.")
    description: str = ""
    source: str = Field(default="", description="Where the case comes from, such as an incident.")
    kind: Literal["regression", "capability"] = Field(
        default="regression", description="regression: worked before; capability: not expected to work yet."
    )
    agent: Name | None = Field(default=None, description="Agent that tries this case, by its name in agents.")
    inputs: dict[str, Any] = Field(
        default={}, description="What the agent is given. task: its input; a trace with the same input is a trial."
    )
    expected_outcome: ExpectedOutcome = ExpectedOutcome()
    expected_tools: tuple[ExpectedCall, ...] | None = Field(
        default=None, description="The calls to make, in order; []: none at all."
    )
    counted_calls: CountedCalls = CountedCalls()
    tool_match: Literal["all", "within"] = Field(
        default="all",
        description="all: make exactly the expected calls. within: make no other calls; none is required.",
    )
    tool_sequence_matters: bool = True
    tool_weights: dict[Literal["selection", "parameters", "sequence", "utilization"], Annotated[float, Field(ge=0)]] = (
        Field(default={}, description="Weights of the four parts of tool_correctness; 0.25 each, and their sum is 1.")
    )
    results_must_be_used: bool = Field(
        default=False, description="Whether the answer must use tool results; a judge decides."
    )
    results_used: bool | None = Field(
        default=None, description="Says that it does, where no judge is to be asked (results_must_be_used)."
    )
    absent: tuple[AbsentFinding, ...] = Field(
        default=(), description="Findings that fail a trial: the reason why the case was made."
    )
    required_order: tuple[Name, ...] = Field(
        default=(), description="Tools that must all be called, each for the first time in this order."
    )
    forbidden_tools: tuple[Name, ...] = Field(
        default=(), description="Tools that must not be called; * matches any text."
    )
    tool_schemas: dict[str, JsonSchema] = Field(
        default={}, description="JSON schemas of arguments by tool; else those that the trace declares."
    )
    minimum_steps: Annotated[int, Field(ge=1)] | None = Field(
        default=None, description="The fewest calls that the task takes; null: as many as are expected."
    )
    exit_code: int | None = Field(default=None, description="The exit code that the run has to leave.")
    output_format: OutputFormat | None = None
    expected_answer: str | None = Field(default=None, description="What the answer should say; a judge compares.")
    knowledge: tuple[str, ...] = Field(default=(), description="Facts that the judge can use.")
    interactions: tuple[Interaction, ...] = Field(default=(), description="Of a conversation, one by one.")
    graders: tuple[Name, ...] = Field(
        default=(),
        description="Graders that must pass besides those of the fields above: names of metrics of level trial, or "
        "functions of your own as module:function or ./file.py:function.",
    )
    thresholds: dict[str, Share] = Field(default={}, description="Thresholds of this case by grader.")
    end_state_from: str | None = Field(
        default=None, description="Function that is given the trial and returns its end state (module:function)."
    )
    open: tuple[Literal["expected_tools", "expected_answer"], ...] = Field(
        default=(), description="What a person has yet to fill in; the case is not decided before."
    )
    recorded: Recorded | None = None
    mocks: dict[Name, tuple[Mock, ...]] = Field(default={}, description="By tool; the first that fits a call answers.")
    unmocked: Literal["refuse", "pass", "recorded"] | None = Field(
        default=None,
        description="What a call gets that no mock fits: refuse (where there are mocks) and pass (to the tool itself); "
        "recorded: the results in recorded.calls of calls with equal arguments, one after another, else refuse.",
    )
    scenario: Scenario | None = Field(
        default=None, description="A user whom a model plays, in place of fixed messages."
    )

    @model_validator(mode="before")
    @classmethod
    def _shorthands(cls, given: Any) -> Any:
        if not isinstance(given, Mapping):
            return given
        told = dict(given)
        if isinstance(told.get("grader"), str) and "graders" not in told:
            told["graders"] = [told.pop("grader")]
        if isinstance(told.get("output_format"), str):
            told["output_format"] = {"type": told["output_format"]}
        if isinstance(mocks := told.get("mocks"), Mapping):
            told["mocks"] = {name: each if isinstance(each, list) else [each] for name, each in mocks.items()}
        return told

    @field_validator("tool_weights")
    @classmethod
    def _sum_up(cls, value: dict[str, float]) -> dict[str, float]:
        if value and (set(value) != set(WEIGHTS) or abs(math.fsum(value.values()) - 1.0) > _SUM):
            raise ValueError(f"give all of {', '.join(WEIGHTS)}, which sum up to 1")
        return value

    @field_validator("open")
    @classmethod
    def _is_open(cls, value: tuple[str, ...], info: Any) -> tuple[str, ...]:
        filled = [name for name in value if info.data.get(name) is not None]
        if filled:
            raise ValueError(f"{filled[0]} is filled in: take it out of open")
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
        """The expected calls; ``None`` without expectations of tools."""
        if self.expected_tools is not None:
            return self.expected_tools
        named = self.expected_outcome.tools_called
        return None if named is None else tuple(ExpectedCall(tool_name=name) for name in named)


class Suite(CasePart):
    """A file of cases."""

    name: str = ""
    personas: dict[Name, Persona] | Name = Field(
        default={}, description="Personas of simulated users by name, or the YAML file that has them."
    )
    user_prompt: UserPrompt | None = Field(
        default=None,
        description="Prompt of the simulated user, in place of ours. {goal}, {profile}, {knowledge} and {conversation} "
        "are filled in. The form of the reply is added.",
    )
    agents: dict[Name, AgentEntry] = Field(
        default={}, description="Agents by name, for --agent and for agent of cases; the first is the default."
    )
    graders_from: str | None = Field(
        default=None, description="Module or ./file.py of the functions that graders name by their bare names."
    )
    cases: tuple[Case, ...] = Field(min_length=1)
