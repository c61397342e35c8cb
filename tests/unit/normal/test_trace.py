"""Trace properties other than turns, calls and session."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from pandaeval_otel.model import Kind, Message, Reasoning, Text, ToolDefinition, Trace, Trigger, Usage
from pandaeval_otel.normal.trace import Closing, is_genai, trace_of
from tests.support.builders import Spans, asks, gives, says, user

HI = user("hi")


def built(spans: Spans, closing: Closing | None = None) -> Trace:
    return trace_of(spans(), "digest", closing or Closing())


class TestError:
    def test_error_of_the_root_is_the_error_of_the_trace(self) -> None:
        spans = Spans()
        spans.agent(error="boom")
        assert (built(spans).error, built(spans).status) == ("boom", "error")

    def test_inner_errors_are_ignored_if_the_run_answered(self) -> None:
        spans = Spans()
        agent = spans.agent(output=(says("sorry"),))
        spans.tool(agent, error="timeout")
        spans.llm(agent, error="429")
        assert built(spans).error is None

    def test_copied_tool_error_is_ignored_if_the_model_answered_afterwards(self) -> None:
        spans = Spans()
        agent = spans.agent(output=(says("sorry"),), error="timeout")
        spans.llm(agent, [HI], says(asks()))
        spans.tool(agent, error="timeout")
        assert built(spans).error == "timeout"
        spans.llm(agent, [HI], "sorry", error="timeout")
        assert built(spans).error is None

    def test_agent_error_counts_if_the_workflow_reports_none(self) -> None:
        spans = Spans()
        spans.llm(spans.agent(spans.add(Kind.WORKFLOW), error="boom"), [HI], error="400")
        assert built(spans).error == "boom"

    def test_model_error_counts_if_no_other_span_reports_it(self) -> None:
        spans = Spans()
        agent = spans.agent()
        spans.llm(agent, [HI], says(asks()))
        spans.llm(agent, error="400")
        assert built(spans).error == "400"

    def test_model_error_is_ignored_after_a_successful_retry(self) -> None:
        spans = Spans()
        agent = spans.agent()
        spans.llm(agent, error="429")
        spans.llm(agent)
        assert built(spans).error is None

    def test_error_of_an_earlier_run_is_ignored(self) -> None:
        spans = Spans()
        spans.agent(input=(HI,), error="boom")
        spans.agent(input=(HI,), output=(says("hello"),))
        assert built(spans).error is None


class TestAgent:
    def test_trace_is_not_named_after_an_agent_called_by_a_tool(self) -> None:
        spans = Spans()
        root = spans.agent(name="", service="shop")
        spans.agent(spans.tool(root), name="flights")
        assert built(spans).agent == "shop"

    def test_trace_is_named_after_the_agent_of_its_root(self) -> None:
        spans = Spans()
        root = spans.agent(name="front", service="shop")
        spans.agent(root, name="desk")
        assert built(spans).agent == "front"
        assert built(spans).agents == ("front", "desk")

    def test_trace_is_named_after_the_agent_else_the_model_call_else_the_service(self) -> None:
        spans = Spans()
        flow = spans.add(Kind.WORKFLOW, service="shop")
        assert built(spans).agent == "shop"
        spans.llm(flow, agent_name="of a model call")
        assert built(spans).agent == "of a model call"
        spans.agent(flow, name="desk")
        assert built(spans).agent == "desk"
        assert built(spans).agents == ("of a model call", "desk")


class TestTokens:
    def test_usage_sums_model_calls_without_the_totals_of_agents(self) -> None:
        spans = Spans()
        agent = spans.agent(usage=Usage(30, 3))
        spans.llm(agent, usage=Usage(10, 1))
        spans.llm(agent, usage=Usage(20, 2))
        assert built(spans).usage == Usage(30, 3)
        assert built(spans).llm_calls == 2

    def test_usage_comes_from_agents_if_there_are_no_model_calls(self) -> None:
        spans = Spans()
        spans.agent(usage=Usage(30, 3))
        assert built(spans).usage == Usage(30, 3)


class TestReasoning:
    def test_each_reasoning_text_is_listed_once(self) -> None:
        spans = Spans()
        agent = spans.agent()
        for _ in range(2):
            spans.llm(agent, [HI], says(Reasoning("again"), asks()))
        spans.llm(agent, [HI], says(Reasoning("enough"), "done"))
        assert built(spans).reasoning == ("again", "enough")

    def test_reasoning_that_appears_only_in_the_history_is_listed(self) -> None:
        spans = Spans()
        agent = spans.agent()
        spans.llm(agent, [HI], says(asks()))
        spans.llm(agent, [HI, says(Reasoning("look it up"), asks()), gives(1)], "done")
        assert built(spans).reasoning == ("look it up",)

    def test_reasoning_of_earlier_turns_is_ignored(self) -> None:
        spans = Spans()
        spans.llm(None, [HI, says(Reasoning("greet"), "hello"), user("bye")], "see you")
        assert built(spans).reasoning == ()


def test_most_complete_definition_of_each_tool_is_kept() -> None:
    spans = Spans()
    bare, full = ToolDefinition("a"), ToolDefinition("a", "does a", {"type": "object"})
    agent = spans.agent(tools=(bare, ToolDefinition("b")))
    spans.llm(agent, tools=(full,))
    assert built(spans).tools == (full, ToolDefinition("b"))


class TestScores:
    """Third-party scores in the trace."""

    def test_evaluation_spans_and_their_model_calls_are_not_counted(self) -> None:
        spans = Spans()
        agent = spans.agent(input=(HI,), output=(says("hello"),))
        score = spans.add(Kind.EVALUATION, agent)
        spans.llm(score, [user("is it good?")], "yes", usage=Usage(5, 1))
        trace = built(spans)
        assert (trace.llm_calls, trace.usage, len(trace.spans)) == (0, Usage(), 1)

    def test_trace_with_only_an_evaluation_is_not_genai(self) -> None:
        spans = Spans()
        spans.add(Kind.EVALUATION)
        assert not is_genai(built(spans))


class TestIsGenai:
    def test_trace_with_only_tool_spans_of_an_unknown_program_is_not_genai(self) -> None:
        spans = Spans()
        spans.tool(dialects=("plain",))
        assert not is_genai(built(spans))

    def test_trace_with_a_model_call_is_genai(self) -> None:
        spans = Spans()
        spans.llm(spans.add(Kind.OTHER))
        assert is_genai(built(spans))

    def test_trace_with_a_step_with_messages_is_genai(self) -> None:
        spans = Spans()
        spans.add(Kind.STEP, input=(HI,))
        assert is_genai(built(spans))

    def test_trace_that_only_creates_an_agent_is_not_genai(self) -> None:
        spans = Spans()
        spans.add(Kind.STEP, agent_name="desk")
        assert not is_genai(built(spans))

    @pytest.mark.parametrize(("dialects", "business"), [(("mcp", "gen_ai"), False), (("gen_ai",), True)])
    def test_tool_call_recorded_only_by_its_mcp_server_is_not_genai(
        self, dialects: tuple[str, ...], business: bool
    ) -> None:
        spans = Spans()
        spans.tool(dialects=dialects)
        assert is_genai(built(spans)) is business

    def test_mcp_server_call_inside_an_agent_run_is_genai(self) -> None:
        spans = Spans()
        spans.tool(spans.agent(), dialects=("mcp", "gen_ai"))
        assert is_genai(built(spans))

    def test_web_request_is_not_genai(self) -> None:
        spans = Spans()
        spans.add(Kind.OTHER)
        assert not is_genai(built(spans))


class TestCompleteness:
    def test_trace_with_a_parentless_span_is_complete(self) -> None:
        spans = Spans()
        spans.llm(spans.agent())
        trace = built(spans)
        assert (trace.complete, trace.fragment) == (True, False)

    def test_trace_with_a_remote_parent_is_a_fragment(self) -> None:
        spans = Spans()
        spans.agent(parent_id="f" * 16, remote_parent=True)
        trace = built(spans)
        assert (trace.complete, trace.fragment) == (False, True)

    def test_trigger_of_a_later_revision_follows_from_its_spans(self) -> None:
        spans = Spans()
        spans.agent()
        assert built(spans, Closing(Trigger.IDLE, revision=2)).trigger is Trigger.ROOT_ENDED
        assert built(spans, Closing(Trigger.IDLE, revision=1)).trigger is Trigger.IDLE


def test_agent_name_is_read_from_a_create_agent_step() -> None:
    spans = Spans()
    above = spans.add(Kind.OTHER)
    spans.add(Kind.STEP, above, name="create_agent desk", agent_name="desk")
    spans.llm(above, given=[user("hi")], said="Hello.", service="shop")
    assert trace_of(spans(), "digest", Closing()).agent == "desk"


@pytest.mark.parametrize(
    ("name", "agent"),
    [
        ("desk.workflow", "desk"),
        ("invoke_workflow desk", "desk"),
        ("LangGraph.workflow", "shop"),
        ("Pipeline.run", "shop"),
    ],
)
def test_trace_is_named_after_its_workflow_span_unless_the_name_is_generic(name: str, agent: str) -> None:
    spans = Spans()
    root = spans.add(Kind.WORKFLOW, name=name, service="shop")
    spans.llm(root, given=[user("hi")], said="Hello.", service="shop")
    assert trace_of(spans(), "digest", Closing()).agent == agent
    spans.agent(root, "triage")
    assert trace_of(spans(), "digest", Closing()).agent == "triage"


def test_final_answer_tool_is_not_listed_as_available() -> None:
    spans = Spans()
    spans.llm(spans.agent(), [HI], "hello", tools=(ToolDefinition("search"), ToolDefinition("final_answer")))
    assert [tool.name for tool in built(spans).tools] == ["search"]


def test_tool_definitions_are_kept_per_agent() -> None:
    delegate, book = ToolDefinition("delegate"), ToolDefinition("book", "b", {"type": "object"})
    other = ToolDefinition("book", "b", {"type": "object", "required": ["seat"]})
    spans = Spans()
    boss = spans.agent(name="boss", tools=(delegate, book))
    spans.llm(boss, [HI], "hello", tools=(delegate, book))
    desk = spans.agent(spans.tool(boss, "delegate"), name="desk", tools=(other,))
    spans.tool(desk, "book", arguments={})
    found = built(spans)
    assert [(tool.name, tool.agents) for tool in found.tools] == [
        ("delegate", ("boss",)),
        ("book", ("boss",)),
        ("book", ("desk",)),
    ]
    call = next(call for call in found.tool_calls if call.name == "book")
    definition = found.definition(call)
    assert definition is not None
    assert definition.parameters == other.parameters


def test_tools_shared_by_all_agents_name_no_agent() -> None:
    spans = Spans()
    boss = spans.agent(name="boss", tools=(ToolDefinition("a"),))
    spans.agent(spans.tool(boss), name="desk", tools=(ToolDefinition("a"),))
    assert built(spans).tools == (ToolDefinition("a"),)


class TestChoices:
    """Only the choice that the run continues is kept."""

    def chosen(self, *choices: Message, then: Sequence[Message] = (), answer: str | None = None) -> tuple[str, ...]:
        spans = Spans()
        agent = spans.agent(input=(user("Hi"),), output=(says(answer),) if answer else None)
        spans.add(Kind.LLM, agent, input=(user("Hi"),), output=tuple(choices))
        if then:
            spans.llm(agent, [user("Hi"), *then], "Done.")
        made = trace_of(spans(), "d", Closing())
        first = next(span for span in made.spans if span.kind is Kind.LLM)
        return tuple(message.text for message in first.output or ())

    ONE, TWO = Message("assistant", (Text("one"),), "stop"), Message("assistant", (Text("two"),), "stop")
    TOOL = Message("assistant", (asks(id="c1"),), "tool_calls")

    def test_choice_repeated_in_the_next_input_is_kept(self) -> None:
        assert self.chosen(self.ONE, self.TWO, then=[says("one"), user("Go on")]) == ("one",)

    def test_choice_equal_to_the_agent_answer_is_kept(self) -> None:
        assert self.chosen(self.ONE, self.TWO, answer="one") == ("one",)

    def test_choice_with_the_tool_call_that_ran_is_kept(self) -> None:
        assert self.chosen(self.TOOL, self.TWO, then=[says(asks(id="c1")), gives(1, "c1")]) == ("",)

    def test_equal_choices_are_all_kept(self) -> None:
        assert self.chosen(self.ONE, self.ONE, then=[says("one"), user("Go on")]) == ("one", "one")

    def test_all_choices_are_kept_if_the_continued_choice_is_unknown(self) -> None:
        assert self.chosen(self.ONE, self.TWO) == ("one", "two")

    def test_message_without_a_finish_reason_is_part_of_an_answer_and_no_choice(self) -> None:
        assert self.chosen(says("one"), self.TWO, then=[says("one"), user("Go on")]) == ("one", "two")
