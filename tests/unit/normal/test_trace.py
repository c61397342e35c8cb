"""Trace properties beside turns, calls and session."""

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
    def test_of_the_root(self) -> None:
        spans = Spans()
        spans.agent(error="boom")
        assert (built(spans).error, built(spans).status) == ("boom", "error")

    def test_one_that_the_run_coped_with_does_not_count(self) -> None:
        spans = Spans()
        agent = spans.agent(output=(says("sorry"),))
        spans.tool(agent, error="timeout")
        spans.llm(agent, error="429")
        assert built(spans).error is None

    def test_not_a_copy_of_a_tools_after_which_the_model_spoke(self) -> None:
        spans = Spans()
        agent = spans.agent(output=(says("sorry"),), error="timeout")
        spans.llm(agent, [HI], says(asks()))
        spans.tool(agent, error="timeout")
        assert built(spans).error == "timeout"
        spans.llm(agent, [HI], "sorry", error="timeout")
        assert built(spans).error is None

    def test_an_agents_below_a_workflow_that_hides_it(self) -> None:
        spans = Spans()
        spans.llm(spans.agent(spans.add(Kind.WORKFLOW), error="boom"), [HI], error="400")
        assert built(spans).error == "boom"

    def test_a_model_calls_that_nobody_else_tells_of(self) -> None:
        spans = Spans()
        agent = spans.agent()
        spans.llm(agent, [HI], says(asks()))
        spans.llm(agent, error="400")
        assert built(spans).error == "400"

    def test_not_one_that_was_tried_again(self) -> None:
        spans = Spans()
        agent = spans.agent()
        spans.llm(agent, error="429")
        spans.llm(agent)
        assert built(spans).error is None

    def test_not_an_earlier_runs(self) -> None:
        spans = Spans()
        spans.agent(input=(HI,), error="boom")
        spans.agent(input=(HI,), output=(says("hello"),))
        assert built(spans).error is None


class TestAgent:
    def test_an_agent_that_a_tool_called_does_not_lend_its_name(self) -> None:
        spans = Spans()
        root = spans.agent(name="", service="shop")
        spans.agent(spans.tool(root), name="flights")
        assert built(spans).agent == "shop"

    def test_the_roots_name_then_the_first_agents_then_the_services(self) -> None:
        spans = Spans()
        flow = spans.add(Kind.WORKFLOW, service="shop")
        assert built(spans).agent == "shop"
        spans.llm(flow, agent_name="of a model call")
        assert built(spans).agent == "of a model call"
        spans.agent(flow, name="desk")
        assert built(spans).agent == "desk"
        assert built(spans).agents == ("of a model call", "desk")


class TestTokens:
    def test_of_model_calls_and_not_of_agents_that_sum_them_up(self) -> None:
        spans = Spans()
        agent = spans.agent(usage=Usage(30, 3))
        spans.llm(agent, usage=Usage(10, 1))
        spans.llm(agent, usage=Usage(20, 2))
        assert built(spans).usage == Usage(30, 3)
        assert built(spans).llm_calls == 2

    def test_of_agents_where_no_model_call_is_seen(self) -> None:
        spans = Spans()
        spans.agent(usage=Usage(30, 3))
        assert built(spans).usage == Usage(30, 3)


class TestReasoning:
    def test_every_thought_once(self) -> None:
        spans = Spans()
        agent = spans.agent()
        for _ in range(2):
            spans.llm(agent, [HI], says(Reasoning("again"), asks()))
        spans.llm(agent, [HI], says(Reasoning("enough"), "done"))
        assert built(spans).reasoning == ("again", "enough")

    def test_thoughts_that_stand_only_in_the_history(self) -> None:
        spans = Spans()
        agent = spans.agent()
        spans.llm(agent, [HI], says(asks()))
        spans.llm(agent, [HI, says(Reasoning("look it up"), asks()), gives(1)], "done")
        assert built(spans).reasoning == ("look it up",)

    def test_not_those_of_earlier_turns(self) -> None:
        spans = Spans()
        spans.llm(None, [HI, says(Reasoning("greet"), "hello"), user("bye")], "see you")
        assert built(spans).reasoning == ()


def test_the_fullest_definition_of_each_tool() -> None:
    spans = Spans()
    bare, full = ToolDefinition("a"), ToolDefinition("a", "does a", {"type": "object"})
    agent = spans.agent(tools=(bare, ToolDefinition("b")))
    spans.llm(agent, tools=(full,))
    assert built(spans).tools == (full, ToolDefinition("b"))


class TestScores:
    """Third-party scores in the trace."""

    def test_neither_they_nor_the_judges_calls_below_them_are_the_agents(self) -> None:
        spans = Spans()
        agent = spans.agent(input=(HI,), output=(says("hello"),))
        score = spans.add(Kind.EVALUATION, agent)
        spans.llm(score, [user("is it good?")], "yes", usage=Usage(5, 1))
        trace = built(spans)
        assert (trace.llm_calls, trace.usage, len(trace.spans)) == (0, Usage(), 1)

    def test_a_trace_of_nothing_else_is_none_of_our_business(self) -> None:
        spans = Spans()
        spans.add(Kind.EVALUATION)
        assert not is_genai(built(spans))


class TestBusiness:
    def test_tool_spans_of_an_unknown_program_alone_are_none(self) -> None:
        spans = Spans()
        spans.tool(dialects=("plain",))
        assert not is_genai(built(spans))

    def test_an_agents_work(self) -> None:
        spans = Spans()
        spans.llm(spans.add(Kind.OTHER))
        assert is_genai(built(spans))

    def test_steps_that_say_something(self) -> None:
        spans = Spans()
        spans.add(Kind.STEP, input=(HI,))
        assert is_genai(built(spans))

    def test_not_the_making_of_an_agent(self) -> None:
        spans = Spans()
        spans.add(Kind.STEP, agent_name="desk")
        assert not is_genai(built(spans))

    @pytest.mark.parametrize(("dialects", "business"), [(("mcp", "gen_ai"), False), (("gen_ai",), True)])
    def test_not_a_call_that_only_its_server_records(self, dialects: tuple[str, ...], business: bool) -> None:
        spans = Spans()
        spans.tool(dialects=dialects)
        assert is_genai(built(spans)) is business

    def test_a_servers_call_beside_the_agents_work(self) -> None:
        spans = Spans()
        spans.tool(spans.agent(), dialects=("mcp", "gen_ai"))
        assert is_genai(built(spans))

    def test_not_a_web_request(self) -> None:
        spans = Spans()
        spans.add(Kind.OTHER)
        assert not is_genai(built(spans))


class TestCompleteness:
    def test_a_parentless_span_completes_it(self) -> None:
        spans = Spans()
        spans.llm(spans.agent())
        trace = built(spans)
        assert (trace.complete, trace.fragment) == (True, False)

    def test_a_parent_that_lives_elsewhere_makes_it_a_fragment(self) -> None:
        spans = Spans()
        spans.agent(parent_id="f" * 16, remote_parent=True)
        trace = built(spans)
        assert (trace.complete, trace.fragment) == (False, True)

    def test_one_that_was_decided_again_closed_for_the_reason_that_its_spans_show(self) -> None:
        spans = Spans()
        spans.agent()
        assert built(spans, Closing(Trigger.IDLE, revision=2)).trigger is Trigger.ROOT_ENDED
        assert built(spans, Closing(Trigger.IDLE, revision=1)).trigger is Trigger.IDLE


def test_an_agent_that_only_its_making_names() -> None:
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
def test_a_workflow_has_the_name_that_its_span_says(name: str, agent: str) -> None:
    spans = Spans()
    root = spans.add(Kind.WORKFLOW, name=name, service="shop")
    spans.llm(root, given=[user("hi")], said="Hello.", service="shop")
    assert trace_of(spans(), "digest", Closing()).agent == agent
    spans.agent(root, "triage")
    assert trace_of(spans(), "digest", Closing()).agent == "triage"


def test_the_tool_that_hands_over_the_answer_is_not_offered() -> None:
    spans = Spans()
    spans.llm(spans.agent(), [HI], "hello", tools=(ToolDefinition("search"), ToolDefinition("final_answer")))
    assert [tool.name for tool in built(spans).tools] == ["search"]


def test_tools_are_kept_by_the_agent_that_had_them() -> None:
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


def test_agents_that_share_all_tools_need_not_be_named() -> None:
    spans = Spans()
    boss = spans.agent(name="boss", tools=(ToolDefinition("a"),))
    spans.agent(spans.tool(boss), name="desk", tools=(ToolDefinition("a"),))
    assert built(spans).tools == (ToolDefinition("a"),)


class TestChoices:
    """The choice that the run continues counts."""

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

    def test_the_next_input_tells(self) -> None:
        assert self.chosen(self.ONE, self.TWO, then=[says("one"), user("Go on")]) == ("one",)

    def test_the_agents_answer_tells(self) -> None:
        assert self.chosen(self.ONE, self.TWO, answer="one") == ("one",)

    def test_the_tool_that_ran_tells(self) -> None:
        assert self.chosen(self.TOOL, self.TWO, then=[says(asks(id="c1")), gives(1, "c1")]) == ("",)

    def test_equal_choices_stay(self) -> None:
        assert self.chosen(self.ONE, self.ONE, then=[says("one"), user("Go on")]) == ("one", "one")

    def test_without_a_sign_all_stay(self) -> None:
        assert self.chosen(self.ONE, self.TWO) == ("one", "two")

    def test_parts_of_one_answer_stay(self) -> None:
        assert self.chosen(says("one"), self.TWO, then=[says("one"), user("Go on")]) == ("one", "two")
