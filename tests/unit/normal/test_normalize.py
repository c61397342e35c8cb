"""Raw to normal spans: dialect choice and precedence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from pandaeval_otel.base.component_errors import ERRORS
from pandaeval_otel.base.plugins import find
from pandaeval_otel.dialects import Reading
from pandaeval_otel.dialects.plain import DIALECT as PLAIN
from pandaeval_otel.model import Captured, Kind, Message, Text, Usage
from pandaeval_otel.model.raw import STATUS_ERROR, STATUS_OK, RawEvent, RawLink, RawLog, RawSpan, Resource, Scope
from pandaeval_otel.normal import spans
from pandaeval_otel.normal.spans import normalize


def raw(attributes: dict[str, Any] | None = None, **fields: Any) -> RawSpan:
    return RawSpan("t" * 32, "s" * 16, attributes=attributes or {}, **fields)


def message(text: str) -> tuple[Message, ...]:
    return (Message("user", (Text(text),)),)


class Fake:
    """A dialect with fixed answers."""

    def __init__(self, name: str, priority: int, reading: Reading | Exception | None, **hints: Any) -> None:
        self.name, self.priority, self.reading = name, priority, reading
        self.roots = frozenset(hints.get("roots", ()))
        self.scopes, self.names = hints.get("scopes", ()), hints.get("names", ())
        self.marks = frozenset(hints.get("marks", ()))
        self.asked = 0

    def read(self, span: RawSpan, logs: Sequence[RawLog]) -> Reading | None:
        self.asked += 1
        if isinstance(self.reading, Exception):
            raise self.reading
        return self.reading


@pytest.fixture
def forgetful() -> Iterator[None]:
    """Clear the caches around a test."""
    _forget()
    yield
    _forget()


def _forget() -> None:
    spans._plan.cache_clear()
    spans._possible.cache_clear()


@pytest.fixture
def only(forgetful: None, monkeypatch: pytest.MonkeyPatch) -> Any:
    def use(*dialects: Fake) -> None:
        _forget()
        order = tuple(sorted(dialects, key=lambda dialect: -dialect.priority))
        monkeypatch.setattr(spans, "dialects", lambda: order)
        prefixes = tuple({prefix for dialect in order for prefix in dialect.names})
        monkeypatch.setattr(spans, "_name_prefixes", lambda: prefixes)

    return use


def test_each_dialect_is_found_once_and_plain_is_last() -> None:
    found = spans.dialects()
    assert len({dialect.name for dialect in found}) == len(found) == len(find("pandaeval_otel.dialects", "DIALECT"))
    assert found[-1] is PLAIN
    assert "gen_ai" in {dialect.name for dialect in found}


def test_span_of_an_unknown_dialect_is_kept() -> None:
    link = RawLink("a" * 32, "b" * 16)
    span = normalize(
        raw(
            {"http.route": "/x"},
            parent_id="p" * 16,
            name="GET /x",
            start_ns=5,
            end_ns=9,
            links=[link],
            dropped_attributes=3,
        )
    )
    assert (span.trace_id, span.span_id, span.parent_id, span.name) == ("t" * 32, "s" * 16, "p" * 16, "GET /x")
    assert (span.kind, span.start_ns, span.end_ns, span.error) == (Kind.OTHER, 5, 9, None)
    assert (span.links, span.dropped_attributes, span.dialects) == ((("a" * 32, "b" * 16),), 3, ("plain",))
    assert (span.input, span.output, span.arguments, span.tools) == (None, None, None, None)


@pytest.mark.parametrize(
    ("name", "kind", "tool", "agent"),
    [
        ("execute_tool get_weather", Kind.TOOL, "get_weather", ""),
        ("invoke_agent trip bot", Kind.AGENT, "", "trip bot"),
        ("chat gpt-x", Kind.LLM, "", ""),
        ("invoke_workflow trip", Kind.WORKFLOW, "", ""),
        ("chat", Kind.OTHER, "", ""),
        ("chatter on", Kind.OTHER, "", ""),
    ],
)
def test_span_name_gives_kind_tool_and_agent_if_there_are_no_attributes(
    name: str, kind: Kind, tool: str, agent: str
) -> None:
    span = normalize(raw(name=name))
    assert (span.kind, span.tool_name, span.agent_name) == (kind, tool, agent)


# --- merging ---------------------------------------------------------------------------------------------------------


def test_each_field_comes_from_the_highest_priority_dialect_that_sets_it(only: Any) -> None:
    only(
        Fake("low", 10, Reading(kind=Kind.LLM, agent_name="low", request_model="low", usage=Usage(1, 1), error="low")),
        Fake("high", 60, Reading(agent_name="high", input=message("high"), arguments=Captured(None))),
        Fake("middle", 40, Reading(kind=Kind.TOOL, request_model="middle", arguments=Captured(1), usage=Usage(2, 2))),
    )
    span = normalize(raw())
    assert (span.kind, span.agent_name, span.request_model) == (Kind.TOOL, "high", "middle")
    assert (span.input, span.arguments, span.usage, span.error) == (message("high"), Captured(None), Usage(2, 2), "low")
    assert span.dialects == ("high", "middle", "low")


def test_content_precedes_empty_values_and_empty_values_precede_missing_values(only: Any) -> None:
    only(Fake("high", 60, Reading(input=(), tools=())), Fake("low", 10, Reading(input=message("x"), output=())))
    span = normalize(raw())
    assert (span.input, span.output, span.tools, span.result) == (message("x"), (), (), None)


def test_session_ids_and_notes_of_all_dialects_are_combined(only: Any) -> None:
    only(
        Fake("high", 60, Reading(session_ids=((4, "d"), (2, "c")), notes=("a", "b"))),
        Fake("low", 10, Reading(session_ids=((3, "s"), (2, "c")), notes=("b", "c"))),
    )
    span = normalize(raw())
    assert span.session_ids == ((2, "c"), (3, "s"), (4, "d"))
    assert span.notes == ("a", "b", "c")


def test_dialect_without_a_reading_is_not_listed_and_plain_is_only_the_fallback(only: Any) -> None:
    only(Fake("plain", 0, Reading(error="x")), Fake("silent", 50, None), Fake("one", 10, Reading()))
    assert normalize(raw()).dialects == ("one",)
    only(Fake("plain", 0, Reading(error="x")), Fake("silent", 50, None))
    assert normalize(raw()).dialects == ("plain",)


def test_only_the_reading_of_a_dialect_that_raises_is_lost(only: Any) -> None:
    only(Fake("broken", 60, KeyError("x")), Fake("sound", 40, Reading(kind=Kind.LLM, notes=("n",))))
    before = ERRORS.counts()
    span = normalize(raw())
    assert ERRORS.counts() - before == {("dialect", "broken"): 1}
    assert (span.kind, span.dialects) == (Kind.LLM, ("sound",))
    assert span.notes == ("n", "dialect broken could not read a span")


# --- candidates ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("span", "logs"),
    [
        (raw({"vendor.x": 1}), ()),
        (raw({"vendor": 1}), ()),
        (raw(events=[RawEvent("e", 1, {"vendor.x": 1})]), ()),
        (raw(events=[RawEvent("vendor.e", 1)]), ()),
        (raw(), (RawLog("t", "s", "vendor.message"),)),
        (raw(), (RawLog("t", "s", attributes={"event.name": "vendor.message"}),)),
        (raw(), (RawLog("t", "s", attributes={"vendor.x": 1}),)),
        (raw(scope=Scope("vendor.lib.tracer")), ()),
        (raw(name="vendor.run x"), ()),
    ],
)
def test_dialect_reads_a_span_if_any_of_its_hints_matches(only: Any, span: RawSpan, logs: Sequence[RawLog]) -> None:
    dialect = Fake("v", 50, Reading(), roots={"vendor"}, scopes=("vendor.lib",), names=("vendor.run",))
    only(dialect)
    assert normalize(span, logs).dialects == ("v",)
    assert dialect.asked == 1


def test_dialect_with_hints_does_not_read_a_span_that_matches_none(only: Any) -> None:
    dialect = Fake("v", 50, Reading(), roots={"vendor"}, scopes=("vendor.lib",), names=("vendor.run",))
    anyone = Fake("any", 1, None)
    only(dialect, anyone)
    normalize(raw({"vendors.x": 1}, name="vendor", scope=Scope("vendor")))
    assert (dialect.asked, anyone.asked) == (0, 1)


def test_name_hints_match_even_if_one_is_a_prefix_of_another(only: Any) -> None:
    short = Fake("short", 50, Reading(), names=("ai.",))
    long = Fake("long", 60, Reading(), names=("ai.tool",))
    only(short, long)
    assert normalize(raw(name="ai.toolCall")).dialects == ("long", "short")
    assert normalize(raw(name="ai.text")).dialects == ("short",)


def test_caches_stay_bounded(forgetful: None) -> None:
    for number in range(spans._CACHE_LIMIT + 10):
        span = normalize(raw({f"k{number}.n": 1, "gen_ai.operation.name": "chat"}))
        assert span.kind is Kind.LLM
    for cached in (spans._plan, spans._possible):
        assert cached.cache_info().currsize == spans._CACHE_LIMIT


def test_spans_with_the_same_key_roots_share_one_cached_search(only: Any) -> None:
    """Rules on whole keys still apply to each span."""
    marked = Fake("marked", 60, Reading(), roots={"a"}, marks={"a.mark"})
    rooted, other = Fake("rooted", 50, Reading(), roots={"a"}), Fake("other", 40, Reading(), roots={"z"})
    only(marked, rooted, other)
    assert normalize(raw({"a.mark": 1})).dialects == ("marked", "rooted")
    assert [normalize(raw({f"a.{number}": 1})).dialects for number in range(20)] == [("rooted",)] * 20
    assert spans._plan.cache_info().misses == 21
    assert spans._possible.cache_info().misses == 1


# --- fields of OpenTelemetry itself -----------------------------------------------------------------------------------


def exception(kind: str | None = "ValueError", text: str | None = "no") -> RawEvent:
    return RawEvent("exception", 1, {"exception.type": kind, "exception.message": text})


@pytest.mark.parametrize(
    ("span", "error"),
    [
        (raw(), None),
        (raw(status_code=STATUS_ERROR, status_message="timeout"), "timeout"),
        (raw(status_code=STATUS_ERROR, events=[exception()]), "ValueError: no"),
        (raw({"error.type": "TimeoutError"}, status_code=STATUS_ERROR), "TimeoutError"),
        (raw(status_code=STATUS_ERROR), "error"),
        (raw({"error.type": "TOOL_ERROR"}), "TOOL_ERROR"),
        (raw(events=[exception(text=None)]), "ValueError"),
        (raw(events=[exception(None, None)]), "exception"),
        (raw(events=[RawEvent("retry")]), None),
        (raw({"error.type": "x"}, status_code=STATUS_OK, events=[exception()]), None),
        (raw(status_code=STATUS_ERROR, status_message="x" * 5000), "x" * 500),
    ],
)
def test_error_is_read_from_status_error_type_or_exception(span: RawSpan, error: str | None) -> None:
    assert normalize(span).error == error


@pytest.mark.parametrize(
    ("flags", "sampled", "remote"),
    [
        (0, True, False),
        (0x01, True, False),
        (0x100, True, False),  # the Python SDK's exporter fills in no trace flags
        (0x101, True, False),
        (0x300, True, True),
        (0x301, True, True),
        (0x200, True, False),
        (0x02, False, False),
        (0x302, False, True),
    ],
)
def test_sampled_and_remote_parent_are_read_from_the_flags(flags: int, sampled: bool, remote: bool) -> None:
    span = normalize(raw(flags=flags))
    assert (span.sampled, span.remote_parent) == (sampled, remote)


def test_service_environment_scope_and_pandaeval_attributes_are_read() -> None:
    resource = Resource(
        {"service.name": "trips", "deployment.environment": "old", "deployment.environment.name": "prod"}
    )
    own = {"pandaeval.goal": "book", "pandaeval.knowledge": ["a"]}
    span = normalize(raw({**own, "pandaevaluation": 1, "x": 2}, resource=resource, scope=Scope("lib")))
    assert (span.service, span.environment, span.scope) == ("trips", "prod", "lib")
    assert span.attributes == own
    older = normalize(raw(resource=Resource({"deployment.environment": "old"})))
    assert (older.service, older.environment, older.attributes) == ("unknown_service", "old", {})


def test_session_ids_and_user_id_are_read() -> None:
    span = normalize(
        raw(
            {"session.id": "s", "gen_ai.conversation.id": "c", "langfuse.session.id": "", "user.id": 17},
            resource=Resource({"session.id": "p"}),
        )
    )
    assert span.session_ids == ((2, "c"), (3, "s"), (13, "p"))
    assert span.user_id == "17"


def test_exception_in_a_log_record_is_an_error() -> None:
    attributes = {"exception.type": "RateLimit", "exception.message": "slow down"}
    record = RawLog("t", "s", "gen_ai.client.operation.exception", attributes=attributes)
    assert normalize(raw(), [record]).error == "RateLimit: slow down"
    assert normalize(raw(status_code=STATUS_OK), [record]).error is None
    assert normalize(raw(), [RawLog("t", "s", "gen_ai.choice")]).error is None


def test_user_id_is_read_from_a_log_record() -> None:
    assert normalize(raw(), [RawLog("t", "s", attributes={"user.id": "u"})]).user_id == "u"


@pytest.mark.parametrize(
    "name", ["Todo.before_agent", "Summary.after_model", "Todo.abefore_model", "X.wrap_tool_call.task"]
)
def test_middleware_hook_is_a_step_and_its_name_is_no_agent_name(name: str) -> None:
    found = normalize(
        RawSpan("t", "1", name=f"invoke_agent {name}", attributes={"gen_ai.operation.name": "invoke_agent"})
    )
    assert (found.kind, found.agent_name) == (Kind.STEP, "")
    called = {"gen_ai.operation.name": "chat", "gen_ai.agent.name": name}
    found = normalize(RawSpan("t", "1", name="chat m", attributes=called))
    assert (found.kind, found.agent_name) == (Kind.LLM, "")


def test_agent_name_may_contain_a_dot() -> None:
    found = normalize(
        RawSpan("t", "1", name="invoke_agent shop.desk", attributes={"gen_ai.operation.name": "invoke_agent"})
    )
    assert (found.kind, found.agent_name) == (Kind.AGENT, "shop.desk")


@pytest.mark.parametrize(
    ("name", "attributes"),
    [
        ("execute_tool final_result", {"gen_ai.operation.name": "execute_tool"}),
        ("FinalAnswerTool", {"openinference.span.kind": "TOOL", "tool.name": "final_answer", "input.value": "[42]"}),
        ("finish.__call__", {"openinference.span.kind": "TOOL", "input.value": '{"kwargs": {}}'}),
        ("final_answer.tool", {"traceloop.span.kind": "tool"}),
        ("Tool.finish", {"mlflow.spanType": '"TOOL"', "mlflow.spanInputs": "{}"}),
        ("final_answer", {"langfuse.observation.type": "tool", "langfuse.observation.input": "42"}),
        ("final_answer", {"langsmith.span.kind": "tool", "gen_ai.prompt": '{"input": "42"}'}),
        ("final_answer", {"lmnr.span.type": "TOOL", "lmnr.span.input": "42"}),
    ],
)
def test_final_answer_tool_of_a_framework_is_a_step(name: str, attributes: dict[str, Any]) -> None:
    span = normalize(raw(attributes, name=name))
    assert (span.kind, span.tool_name, span.arguments, span.result) == (Kind.STEP, "", None, None)


def test_application_tool_named_finish_is_a_tool_call() -> None:
    span = normalize(raw({"gen_ai.tool.name": "finish", "gen_ai.tool.call.arguments": '{"order": 7}'}))
    assert (span.kind, span.tool_name, span.arguments) == (Kind.TOOL, "finish", Captured({"order": 7}))


def raised(kind: str, at_ns: int = 0) -> RawEvent:
    return RawEvent("exception", at_ns, {"exception.type": kind, "exception.message": "no"})


@pytest.mark.parametrize("kind", ["ToolInterruptError", "pydantic_ai.exceptions.ApprovalRequired", "GraphInterrupt"])
def test_tool_call_interrupted_for_human_input_is_no_error(kind: str) -> None:
    span = normalize(raw({"gen_ai.tool.name": "pay"}, status_code=STATUS_ERROR, events=(raised(kind),)))
    assert (span.kind, span.error) == (Kind.TOOL, None)


def test_dspy_finish_call_with_arguments_is_no_error() -> None:
    fields = {"status_code": STATUS_ERROR, "status_message": "ValueError: Arg x is not in the tool's args."}
    assert normalize(raw({"openinference.span.kind": "TOOL"}, name="finish.__call__", **fields)).error is None
    assert normalize(raw({"openinference.span.kind": "TOOL"}, name="search.__call__", **fields)).error is not None


@pytest.mark.parametrize(("at_ns", "is_error"), [(10**9, False), (5 * 10**9 - 1, True)])
def test_exception_long_before_the_answer_is_no_error(at_ns: int, is_error: bool) -> None:
    output = '[{"role": "assistant", "parts": [{"type": "text", "content": "port"}]}]'
    chat = {"gen_ai.operation.name": "chat", "gen_ai.output.messages": output}
    span = normalize(raw(chat, start_ns=0, end_ns=5 * 10**9, events=(raised("RateLimitError", at_ns),)))
    assert (span.error is not None) is is_error


def test_traceback_after_the_error_message_is_removed() -> None:
    trail = 'Traceback (most recent call last):\n  File "desk.py", line 4\nValueError: no seats'
    for text, error in ((f"ValueError('no seats'){trail}", "ValueError('no seats')"), (trail, trail)):
        raw = RawSpan("t" * 32, "a" * 16, status_code=STATUS_ERROR, status_message=text)
        assert normalize(raw, ()).error == error
