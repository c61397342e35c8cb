"""Mock answers, ``mocked`` calls and case file errors."""

from __future__ import annotations

import asyncio
import inspect
import json
import re
import threading
import time
from collections.abc import Iterator
from contextvars import copy_context
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import pytest
from opentelemetry import baggage, context
from opentelemetry.sdk.trace import TracerProvider

from pandaeval_collector.base.errors import UserError
from pandaeval_lab import MockedToolError, mocked
from pandaeval_lab.cases.files import read_suite
from pandaeval_lab.cases.graders import mock_warnings
from pandaeval_lab.cases.mocks import MockAnswer, Mocks
from pandaeval_lab.cases.model import Case
from pandaeval_lab.cases.trial import function
from pandaeval_lab.running import mocked as module
from pandaeval_lab.running.mock_replies import MockReplies
from pandaeval_otel import using_case, using_session
from support.deploy import ROOT


def _case(id_: str = "shop", unmocked: str | None = None, recorded: Any = None, **mocks: Any) -> Case:
    return Case.model_validate({"id": id_, "mocks": mocks, "unmocked": unmocked, "recorded": recorded})


def _replies(mocks: Mocks, tool: str, *calls: dict[str, Any]) -> list[Any]:
    """Return result or error of each call."""
    replies = [mocks.reply(tool, given) for given in calls]
    return [each.error or each.result for each in replies]


@pytest.mark.parametrize(
    ("mock", "calls", "answers"),
    [
        ({"result": {"paid": 40}}, [{}, {"order": 17}], [{"paid": 40}, {"paid": 40}]),
        ({"result": None}, [{}], [None]),
        ({"results": ["pending", "done"]}, [{}, {}, {}], ["pending", "done", "done"]),
        ({"error": "closed"}, [{}, {}], ["closed", "closed"]),
        ([{"error": "closed", "times": 2}, {"result": "open"}], [{}, {}, {}, {}], ["closed", "closed", "open", "open"]),
        (
            [{"when": {"to": "Bern"}, "result": 1}, {"when": {"seats": [1, 2]}, "result": 2}, {"result": 3}],
            [{"to": "Bern", "at": 9}, {"seats": (1, 2)}, {"to": "Basel"}, {"to": "Bern", "seats": [1, 2]}],
            [1, 2, 3, 1],
        ),
        (
            [{"when": {"to": "Bern"}, "results": [1, 2]}, {"result": 0}],
            [{"to": "Bern"}, {}, {"to": "Bern"}],
            [1, 0, 2],
        ),
        ({"when": {"n": 1}, "result": "one"}, [{"n": 1.0}], ["one"]),
        ({"function": "json:dumps"}, [{"obj": [1]}], ["[1]"]),
        (
            {"function": "json:loads"},
            [{"s": "x"}],
            ["JSONDecodeError: Expecting value: line 1 column 1 (char 0)"],
        ),
    ],
)
def test_the_first_matching_mock_answers(mock: Any, calls: list[dict[str, Any]], answers: list[Any]) -> None:
    assert _replies(Mocks(_case(pay=mock)), "pay", *calls) == answers


@pytest.mark.parametrize("given", [{"n": True}, {"m": 1}, {}])
def test_a_call_without_a_matching_mock_is_refused_with_the_cure(given: dict[str, Any]) -> None:
    reply = Mocks(_case(pay={"when": {"n": 1}, "result": "one"})).reply("pay", given)
    assert reply.kind == "refused"
    assert reply.error.startswith(
        f"pay: no mock of case shop fits {json.dumps(given)}; add a mock to mocks.pay, or set"
    )
    assert Mocks(_case(pay={"result": 1})).reply("book", given).kind == "refused"


def test_mocks_are_counted_per_attempt_and_refused_when_used_up() -> None:
    case = _case(pay={"result": 1, "times": 1})
    for _ in range(2):
        mocks = Mocks(case)
        assert [mocks.reply("pay", {}).kind for _ in range(2)] == ["result", "refused"]


RECORDED = {
    "calls": [
        {"tool_name": "find", "parameters": {"q": "a"}, "result": 1},
        {"tool_name": "find", "parameters": {"q": "b"}, "error": "none"},
        {"tool_name": "find", "parameters": {"q": "a"}, "result": 2},
        {"tool_name": "list", "parameters": {}, "result": [], "error": "odd"},
        {"tool_name": "odd", "parameters": None, "result": "any"},
    ]
}


def test_recorded_calls_are_replayed_in_order() -> None:
    mocks = Mocks(_case(unmocked="recorded", recorded=RECORDED, find={"when": {"q": "c"}, "result": 3}))
    a, b, c = ({"q": name} for name in "abc")
    assert _replies(mocks, "find", b, a, c, a, a, b) == ["none", 1, 3, 2, 2, "none"]
    assert mocks.reply("list", {}).result == [], "what the agent saw"
    assert mocks.reply("find", {"q": "a", "more": 1}).kind == "refused", "other arguments"
    assert mocks.reply("find", {"q": "b", "limit": 9}, {"limit": 9}).error == "none", "a default is no difference"
    assert mocks.reply("odd", {"x": 1}).result == "any", "its arguments were not captured"
    assert [*mocks.by_tool] == ["find", "list", "odd"]
    assert Mocks(_case(recorded=RECORDED, find={"result": 1})).reply("list", {}).kind == "refused", "not asked for"


@mocked
def find(q: str, limit: int = 10, **more: str) -> str:
    """Finds."""
    return f"real {q}"


@mocked
async def pay(order: int) -> str:
    """Pays."""
    return f"really paid {order}"


@pytest.fixture
def playing() -> Iterator[None]:
    cases = [
        _case("a", find={"when": {"q": "x", "limit": 10}, "result": "mock"}, pay={"error": "closed", "delay": "20ms"}),
        _case("b", "pass", find=[{"when": {"c": "red"}, "result": "red"}, {"result": 0, "times": 1, "delay": "20ms"}]),
        _case("real"),
    ]
    module.use_mocks(MockReplies(cases))
    yield
    module.use_mocks(None)


def test_a_mocked_tool_keeps_its_signature_and_runs_for_real_outside_a_case() -> None:
    assert (find.__name__, find.__doc__) == ("find", "Finds.")
    assert [*inspect.signature(find).parameters] == ["q", "limit", "more"]
    assert inspect.iscoroutinefunction(pay)
    assert find("x") == "real x"
    assert asyncio.run(pay(1)) == "really paid 1"
    with using_case("a", 1, propagate=True):
        assert find("x") == "real x", "this process uses no mocks"


@pytest.mark.usefixtures("playing")
def test_calls_within_a_case_get_the_mocks_of_that_case() -> None:
    with using_case("a", 1, propagate=True):
        assert find("x") == "mock", "defaults count as arguments"
        with pytest.raises(MockedToolError, match="find: no mock of case a fits"):
            find(q="x", limit=11)
        began = time.monotonic()
        with pytest.raises(MockedToolError, match=r"^closed$"):
            asyncio.run(pay(order=1))
        assert time.monotonic() - began >= 0.02
        with pytest.raises(TypeError, match="missing a required argument: 'q'"):
            find()
    with using_case("b", 1, propagate=True):
        assert find("y", c="red") == "red"
        began = time.monotonic()
        assert find("y") == 0
        assert time.monotonic() - began >= 0.02
        assert find("y") == "real y", "passed through"
        assert asyncio.run(pay(2)) == "really paid 2"
    with using_case("b", 1, propagate=True), using_session("other", propagate=True):
        assert find("y") == 0, "another attempt"
    with using_case("real", 1, propagate=True):
        assert find("x") == "real x"


@pytest.mark.usefixtures("playing")
def test_a_call_without_a_known_case_never_reaches_the_tool() -> None:
    answers: list[str] = []

    def call() -> None:
        try:
            answers.append(find("x"))
        except MockedToolError as error:
            answers.append(str(error))

    with using_case("a", 1, propagate=True):
        for target in (call, partial(copy_context().run, call)):
            thread = threading.Thread(target=target)
            thread.start()
            thread.join()
    assert answers[0].startswith("find: the case of the call is unknown: propagate OpenTelemetry's context")
    assert answers[1:] == ["mock"]


@pytest.mark.usefixtures("playing")
def test_mocked_calls_are_recorded_on_the_current_span() -> None:
    tracer = TracerProvider().get_tracer("shop")
    with using_case("b", 1, propagate=True), tracer.start_as_current_span("agent") as span:
        find("y" * 3000)
        find("z")
    recorded = [json.loads(each) for each in span.attributes["pandaeval.mock.calls"]]  # type: ignore[attr-defined]
    assert recorded[0]["arguments"].endswith("…")
    assert len(recorded[0]["arguments"]) == 2001
    assert recorded[1] == {"tool": "find", "arguments": {"q": "z"}, "kind": "passed"}


def test_a_server_reads_its_cases_from_an_environment_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "suite.yaml").write_text("cases: [{id: a, mocks: {find: {result: mock}}}]")
    monkeypatch.setenv("PANDAEVAL_MOCKS", str(tmp_path / "suite.yaml"))
    module._of_environment.cache_clear()
    token = context.attach(baggage.set_baggage("pandaeval.case.id", "a"))  # as instrumented servers do
    try:
        assert find("x") == "mock"
    finally:
        context.detach(token)
        monkeypatch.undo()
        module._of_environment.cache_clear()


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        (
            "pay: {}",
            "suite.yaml:5: cases[0].mocks.pay[0]: has nothing; write exactly one of result, results, error and",
        ),
        ("pay: {result: 1, error: no}", "cases[0].mocks.pay[0]: has error and result; write exactly one of result"),
        ("pay: {results: []}", "results is empty; write a list, such as [pending, done]"),
        ("pay: {resul: 1}", "resul: is not a field of a mock; did you mean result?"),
        ("pay: {result: 1, delay: soon}", "cases[0].mocks.pay[0].delay: is not a duration; write 10s"),
        ("pay: {result: 1, times: 0}", "cases[0].mocks.pay[0].times: input should be greater than or equal to 1"),
        ("pay: {function: nowhere_at_all:f}", "pay[0].function: there is no module nowhere_at_all"),
        ("pay: done", "cases[0].mocks.pay[0]: is not a map, such as {key: value}, but 'done'"),
    ],
)
def test_an_error_in_a_mock_is_reported_with_its_place_and_cure(tmp_path: Path, lines: str, why: str) -> None:
    (tmp_path / "suite.yaml").write_text(f"cases:\n- id: a\n  inputs: {{task: x}}\n  mocks:\n    {lines}\n")
    with pytest.raises(UserError) as raised:
        read_suite(tmp_path / "suite.yaml")
    assert why in str(raised.value)


def test_the_documented_example_works_as_described(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (ROOT / "docs" / "guides" / "cases.md").read_text()
    (tmp_path / "suite.yaml").write_text(re.findall(r"```yaml\n(- id: refund-in-two-steps.*?)```", text, re.DOTALL)[0])
    (tmp_path / "world.py").write_text("def shipping_costs(weight):\n    return weight * 2\n")
    monkeypatch.chdir(tmp_path)
    (case,) = read_suite(tmp_path / "suite.yaml").cases
    mocks, order = Mocks(case), {"order": 17}
    assert _replies(mocks, "refund_status", *[order] * 4) == ["pending", "pending", "done", "done"]
    assert mocks.reply("refund_order", order) == MockAnswer("error", error="try again later", delay_s=2.0)
    assert _replies(mocks, "refund_order", order, order) == [{"refunded": 40}] * 2
    assert _replies(mocks, "shipping_costs", {"weight": 3}) == [6]
    assert mocks.reply("refund_order", {"order": 18}).kind == "refused"


def test_changing_a_returned_result_does_not_change_the_mock() -> None:
    mocks = Mocks(_case(find={"result": [1]}))
    mocks.reply("find", {}).result.append(2)
    assert mocks.reply("find", {}).result == [1]


def test_mocked_rejects_an_object_that_is_no_function() -> None:
    with pytest.raises(TypeError, match="below the decorator with which your framework makes a tool"):
        mocked(partial(print, "x"))


class Shop:
    @mocked
    def find(self, q: str) -> str:
        return q


@pytest.mark.usefixtures("playing")
def test_self_is_no_argument_of_a_mocked_method() -> None:
    call = {"tool_name": "find", "parameters": {"q": "x"}, "result": 1}
    module.use_mocks(MockReplies([_case("a", "recorded", {"calls": [call]})]))
    with using_case("a", 1, propagate=True):
        assert Shop().find("x") == 1  # type: ignore[comparison-overlap]


def test_expected_calls_without_a_matching_mock_are_reported(tmp_path: Path) -> None:
    settings = {
        "refused": "mocks: {pay: {when: {n: 1}, result: 1}}",
        "fits": "mocks: {pay: {when: {n: 2}, result: 1}}",
        "passed": "unmocked: pass, mocks: {find: {result: 1}}",
        "real": "tool_sequence_matters: true",
    }
    cases = [
        f"- {{id: {id_}, inputs: {{task: {id_}}}, expected_tools: [{{tool_name: pay, parameters: {{n: 2}}}}], {how}}}"
        for id_, how in settings.items()
    ]
    (tmp_path / "suite.yaml").write_text("cases:\n" + "\n".join(cases))
    (notice,) = mock_warnings(read_suite(tmp_path / "suite.yaml"))
    assert notice == "refused: no mock fits the expected calls of pay; add their results to mocks"


def test_arguments_injected_by_a_framework_are_ignored() -> None:
    class ToolRuntime: ...

    class InjectedState: ...

    @mocked
    def pay(order: int, state: Annotated[dict[str, Any], InjectedState()], *, runtime: ToolRuntime) -> str:
        return "paid"

    call = {"tool_name": "pay", "parameters": {"order": 17}, "result": "closed"}
    case = _case(unmocked="recorded", recorded={"calls": [call]})
    module.use_mocks(MockReplies([case]))
    try:
        with using_case("shop", 1, propagate=True):
            assert pay(17, {"messages": [object()]}, runtime=ToolRuntime()) == "closed"
    finally:
        module.use_mocks(None)


WORLD = """
async def status(order, context):
    return [order, context.case, context.trial, context.session, context.turn, context.call]

def echo(context):
    return context

async def closed():
    raise ValueError("the shop is closed")
"""


def test_mock_functions_may_be_coroutines_and_get_the_context_of_the_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "world.py").write_text(WORLD)
    monkeypatch.chdir(tmp_path)
    functions = {name: {"function": f"./world.py:{name}"} for name in ("status", "echo", "closed")}
    replies = MockReplies([_case(**functions)])

    async def ask() -> list[Any]:
        with using_session("s", propagate=True), using_case("shop", "2", propagate=True):
            token = context.attach(baggage.set_baggage("pandaeval.turn", "3"))
            try:
                first = replies.reply("status", {"order": 17})  # within an event loop
                return [first.result, (await replies.answer("status", {"order": 18})).result]
            finally:
                context.detach(token)

    assert asyncio.run(ask()) == [[17, "shop", "2", "s", 3, 0], [18, "shop", "2", "s", 3, 1]]
    mocks = Mocks(_case(**functions))
    assert _replies(mocks, "status", {"order": 1}) == [[1, "shop", "", "", 0, 0]]
    assert _replies(mocks, "echo", {"context": "own"}) == ["own"], "an argument of the call takes precedence"
    assert _replies(mocks, "closed", {}) == ["ValueError: the shop is closed"]


def test_a_coroutine_tool_does_not_block_the_event_loop_while_its_mock_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "slow.py").write_text(
        "import threading\nfree = threading.Event()\ndef find(q):\n    assert free.wait(30)\n    return q\n"
    )
    monkeypatch.chdir(tmp_path)
    module.use_mocks(MockReplies([_case(afind={"function": "./slow.py:find"})]))

    @mocked
    async def afind(q: str) -> str:
        raise AssertionError(q)

    async def both() -> str:
        with using_case("shop", 1, propagate=True):
            found = asyncio.create_task(afind("x"))
            await asyncio.sleep(0)
            function("./slow.py:find").__globals__["free"].set()  # runs although the mock waits
            return await found

    try:
        assert asyncio.run(both()) == "x"
    finally:
        module.use_mocks(None)
