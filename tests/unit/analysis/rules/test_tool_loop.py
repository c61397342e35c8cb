"""Loops of tool calls in a trace, with lookalikes for each rule."""

from __future__ import annotations

from typing import Any

import pytest

from pandaeval_collector.analysis.rules._verbs import Nature, nature
from pandaeval_collector.analysis.rules.tool_loop import ToolLoop, tool_loop
from pandaeval_otel.model import Kind, Message, Span, Text, ToolCall, ToolDefinition, Trace, Turn, Usage

SECOND = 1_000_000_000
NOTHING = object()


class Run:
    """Builds a trace in steps of one model second and half a tool second."""

    def __init__(self, *, model_spans: bool = True, tool_spans: bool = True, tools: tuple[ToolDefinition, ...] = ()):
        self._model_spans = model_spans
        self._tool_spans = tool_spans
        self._tools = tools
        self._spans: list[Span] = []
        self._calls: list[ToolCall] = []
        self._turns: list[Turn] = []
        self.now = 0

    def call(
        self,
        name: str,
        arguments: Any = NOTHING,
        result: Any = NOTHING,
        *,
        error: str | None = None,
        agent: str = "",
        wait: float = 0.0,
        inside: str = "",
    ) -> Run:
        self.model("", agent, inside)
        self.now += int(wait * SECOND)
        start, end = self.now, self.now + SECOND // 2
        span_id = f"tool{len(self._calls)}"
        if self._tool_spans:
            self._span(span_id, Kind.TOOL, start, end, agent, inside)
        else:
            span_id, end = self._spans[-1].span_id, start
        self._calls.append(
            ToolCall(
                name=name,
                arguments={} if arguments is NOTHING else arguments,
                has_arguments=arguments is not NOTHING,
                result=None if result is NOTHING else result,
                has_result=result is not NOTHING,
                error=error,
                span_id=span_id,
                agent=agent,
                start_ns=start,
                end_ns=end,
            )
        )
        self.now = start + SECOND // 2
        return self

    def model(self, text: str | None, agent: str = "", inside: str = "") -> Run:
        """Add a model call of one second. If ``text`` is ``None``, its output was not captured."""
        if self._model_spans:
            output = None if text is None else (Message("assistant", (Text(text),) if text else ()),)
            self._span(f"llm{len(self._spans)}", Kind.LLM, self.now, self.now + SECOND, agent, inside, output)
        self.now += SECOND
        return self

    def answer(self, text: str | None) -> Run:
        """Answer the user; the next call starts a turn."""
        self.model(text)
        self._turns.append(Turn("?", text, self._spans[-1].span_id))
        return self

    def agent(self, span_id: str, name: str, parent: str) -> Run:
        self._span(span_id, Kind.AGENT, self.now, self.now + 100 * SECOND, name, parent)
        return self

    def trace(self) -> Trace:
        return Trace(
            "t", tuple(self._spans), "root", tool_calls=tuple(self._calls), tools=self._tools, turns=tuple(self._turns)
        )

    def found(self) -> ToolLoop:
        return tool_loop(self.trace())

    def _span(
        self, span_id: str, kind: Kind, start: int, end: int, agent: str, parent: str, output: Any = None
    ) -> None:
        usage = Usage(input=100, output=10) if kind is Kind.LLM else None
        self._spans.append(
            Span("t", span_id, parent, span_id, kind, start, end, agent_name=agent, output=output, usage=usage)
        )


def times(count: int, name: str, arguments: Any = NOTHING, result: Any = NOTHING, **more: Any) -> ToolLoop:
    run = Run()
    for _ in range(count):
        run.call(name, arguments, result, **more)
    return run.found()


ID = {"id": 7}


class TestResult:
    def test_a_trace_without_calls_has_no_loop(self) -> None:
        found = Run().found()
        assert (found.calls, found.wasted_calls, found.ratio, found.looping, found.cycles) == (0, 0, 0.0, False, ())

    def test_a_loop_reports_its_calls_rounds_spans_time_and_tokens(self) -> None:
        run = Run().call("get_user", {"id": 1}, "Ann")
        for _ in range(4):
            run.call("get_line", ID, "active")
        found = run.found()
        assert (found.calls, found.wasted_calls, found.ratio, found.repeated) == (5, 3, 0.6, (2, 3, 4))
        (cycle,) = found.cycles
        assert (cycle.kind, cycle.rounds, cycle.tools, cycle.wasted_calls) == ("repeat", 4, ("get_line",), 3)
        assert cycle.span_ids == ("tool1", "tool2", "tool3", "tool4")
        assert cycle.seconds == 4.5
        assert cycle.tokens == 3 * 110
        assert (found.seconds, found.tokens, found.looping) == (4.5, 3 * 110, True)

    def test_time_that_several_cycles_share_is_counted_once(self) -> None:
        run = Run()
        for index in range(20):
            run.call("get_line", {"id": index % 5}, "active")
        found = run.found()
        assert len(found.cycles) == 5
        assert (found.seconds, found.tokens) == (15 * 1.5, 15 * 110)

    def test_two_rounds_waste_a_call_but_are_no_loop(self) -> None:
        found = times(2, "get_line", ID, "active")
        assert (found.wasted_calls, found.looping) == (1, False)

    def test_three_rounds_are_a_loop_whatever_the_ratio(self) -> None:
        run = Run()
        for page in range(100):
            run.call("list_orders", {"page": page}, f"orders {page}")
        for _ in range(3):
            run.call("get_line", ID, "active")
        found = run.found()
        assert (found.ratio < 0.02, found.looping) == (True, True)


class TestEquivalentArguments:
    @pytest.mark.parametrize(
        ("one", "other"),
        [
            ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
            ({"a": 1}, {"a": 1.0}),
            ({"q": "red shoes"}, {"q": " red shoes\n"}),
            ({"a": 1}, {"a": 1, "limit": None}),
            ({"a": 1, "request_id": "x"}, {"a": 1, "request_id": "y"}),
            ({"a": 1, "requestId": "x"}, {"a": 1}),
            ({"a": 1, "timestamp": 5}, {"a": 1, "timestamp": 6}),
            ({"a": {"nonce": 1, "b": 2}}, {"a": {"nonce": 3, "b": 2}}),
            ({"a": 1, "Idempotency-Key": "x"}, {"a": 1, "Idempotency-Key": "y"}),
            ({}, None),
            ({}, {"": ""}),
            ({}, "{}"),
            ("null", {"": {}}),
            ({"filter": {}}, {"filter": None, "tags": []}),
            ({"a": 1, "b": ""}, {"a": 1}),
            ({"code": "x = 1\nprint(x)"}, {"code": "# again\nx = 1  \n\nprint(x)\n"}),
            ({"q": "red shoes"}, {"q": "red  shoes"}),
            ({"code": "print( rows['a'] )"}, {"code": 'print(  rows["a"] )'}),
            ("plain text", "plain text"),
        ],
    )
    def test_equivalent_arguments_repeat_a_call(self, one: Any, other: Any) -> None:
        assert Run().call("get_line", one, "r").call("get_line", other, "r").found().wasted_calls == 1

    @pytest.mark.parametrize(
        ("one", "other"),
        [
            ({"a": 1}, {"a": 2}),
            ({"a": 1}, {"a": "1"}),
            ({"a": [1, 2]}, {"a": [2, 1]}),
            ({"a": True}, {"a": 1}),
            ({"request_id": "x"}, {"request_id": "y"}),  # the ID is the only argument, so it counts
            ({"q": "shoes", "page": 1}, {"q": "shoes", "page": 2}),
            ({"q": 0}, {}),
            ({"q": False}, {}),
            ({"code": "x = 1"}, {"code": "x = 2"}),
            ({"code": "if x:\n  a()\nb()"}, {"code": "if x:\n  a()\n  b()"}),
            ({"q": "shoes", "cursor": "a"}, {"q": "shoes", "cursor": "b"}),
        ],
    )
    def test_different_arguments_make_another_call(self, one: Any, other: Any) -> None:
        assert Run().call("get_line", one, "r").call("get_line", other, "r").found().wasted_calls == 0

    def test_a_missing_argument_equals_the_default_of_the_tool_definition(self) -> None:
        schema = {"type": "object", "properties": {"q": {"type": "string"}, "limit": {"default": 10}}}
        tool = ToolDefinition("list_lines", parameters=schema)
        for limit, wasted in ((10, 1), (10.0, 1), (20, 0)):
            run = (
                Run(tools=(tool,))
                .call("list_lines", {"q": "a"}, "r")
                .call("list_lines", {"q": "a", "limit": limit}, "r")
            )
            assert run.found().wasted_calls == wasted, limit

    def test_calls_of_different_tools_are_no_repetition(self) -> None:
        assert Run().call("get_line", ID, "r").call("get_plan", ID, "r").found().wasted_calls == 0

    def test_not_captured_arguments_are_never_compared(self) -> None:
        assert times(10, "get_line", NOTHING, "r").wasted_calls == 0

    def test_calls_of_a_tool_without_parameters_are_compared(self) -> None:
        tool = ToolDefinition("list_lines", parameters={"type": "object", "properties": {}})
        run = Run(tools=(tool,))
        for _ in range(3):
            run.call("list_lines", NOTHING, "r")
        assert run.found().looping

    def test_arguments_that_cannot_be_serialized_are_never_compared(self) -> None:
        assert times(5, "get_line", {"a": 10**5000}, "r").wasted_calls == 0

    def test_arguments_nested_too_deep_are_never_compared(self) -> None:
        deep: Any = {}
        for _ in range(2000):
            deep = {"a": deep}
        assert times(5, "get_line", deep, "r").wasted_calls == 0


class TestNothingNew:
    @pytest.mark.parametrize(
        ("one", "other"),
        [
            ({"status": "ok", "timestamp": 1}, {"status": "ok", "timestamp": 2}),
            ('{"status": "ok", "request_id": "a"}', '{"status": "ok", "request_id": "b"}'),
            (None, None),
            ([], []),
            ({"rows": ["a", "b"]}, {"rows": ["b", "a"]}),
            ('{"rows": [{"x": 1}, {"x": 2}]}', '{"rows": [{"x": 2}, {"x": 1}]}'),
            ({"status": "ok", "meta": {"updated_at": 1}}, {"status": "ok", "meta": {"updated_at": 2}}),
            ({"status": "ok", "id": "a"}, {"status": "ok", "id": "b"}),
            ({"status": "ok", "attempt": 1}, {"status": "ok", "attempt": 2}),
            ({"status": "ok", "cost_usd": 0.1, "latency_ms": 5}, {"status": "ok", "cost_usd": 0.2, "latency_ms": 9}),
            ("no line found at 2026-05-01T10:00:01Z", "no line found at 2026-05-01T10:00:09Z"),
        ],
    )
    def test_equivalent_results_waste_the_second_call(self, one: Any, other: Any) -> None:
        assert Run().call("get_line", ID, one).call("get_line", ID, other).found().wasted_calls == 1

    @pytest.mark.parametrize(
        ("one", "other"),
        [
            ({"progress": 10}, {"progress": 20}),
            ({"rows": ["a", "b"]}, {"rows": ["a", "b", "c"]}),
            ({"rows": [1, 1]}, {"rows": [1]}),
            ({"status": "ok", "attempt": 1}, {"status": "done", "attempt": 2}),
            ({"id": "a"}, {"id": "b"}),  # the ID is the only value, so it counts
            ("2026-05-01T10:00:01Z", "2026-05-01T10:00:09Z"),
            ("one\ntwo", "one\nthree"),
            ({"timestamp": 1}, {"timestamp": 2}),  # the time is the only value, so it counts
            ({"item": {"timestamp": 1}}, {"item": {"timestamp": 2}}),
            ("job 1234567890", "job 1234567891"),
            (None, NOTHING),
        ],
    )
    def test_different_results_waste_no_call(self, one: Any, other: Any) -> None:
        assert Run().call("get_line", ID, one).call("get_line", ID, other).found().wasted_calls == 0

    def test_a_result_nested_too_deep_to_compare_is_no_repetition(self) -> None:
        def deep() -> Any:
            value: Any = 0
            for _ in range(100_000):
                value = [value]
            return value

        run = Run().call("get_line", ID, deep()).call("get_line", ID, deep())
        assert run.found().wasted_calls == 0

    def test_three_reading_calls_without_captured_results_are_a_loop(self) -> None:
        assert times(2, "get_line", ID).wasted_calls == 0
        found = times(3, "get_line", ID)
        assert (found.wasted_calls, found.looping) == (2, True)

    def test_changing_calls_without_captured_results_are_no_loop(self) -> None:
        assert times(10, "update_line", ID).wasted_calls == 0


class TestRephrasedSearches:
    """Several searches for one subject in different words."""

    def found(self, *queries: str, results: Any = None, name: str = "search_web", **more: Any) -> ToolLoop:
        run = Run()
        for number, query in enumerate(queries):
            answer = results[number] if results is not None else {"hits": ["Ferries to Oslo run in summer only."]}
            run.call(name, {"query": query, **more}, answer)
        return run.found()

    def test_rephrased_searches_without_new_results_are_a_loop(self) -> None:
        found = self.found(
            "winter ferry from Kiel to Oslo", "ferries Kiel Oslo in winter", "Kiel Oslo ferry winter times"
        )
        assert (found.wasted_calls, found.looping, found.cycles[0].rounds) == (2, True, 3)

    def test_one_rephrased_search_is_no_waste(self) -> None:
        assert self.found("ferry to Oslo", "ferries Oslo").wasted_calls == 0

    @pytest.mark.parametrize(("others", "repeated"), [(47, (48, 49)), (48, ())])
    def test_a_search_is_forgotten_after_48_other_subjects(self, others: int, repeated: tuple[int, ...]) -> None:
        letters = [a + b for a in "bcdfghj" for b in "klmnpqr"][:others]
        between = [f"{two}lake {two}tower {two}bridge" for two in letters]
        ferries = ("winter ferry from Kiel to Oslo", "ferries Kiel Oslo in winter", "Kiel Oslo ferry winter times")
        results = ["none but in summer", *[f"of {one} much is known" for one in between], *["none but in summer"] * 2]
        assert self.found(ferries[0], *between, *ferries[1:], results=results).repeated == repeated

    def test_a_part_of_earlier_results_is_nothing_new(self) -> None:
        results = [{"hits": ["a b c", "d e f"]}, {"hits": ["d e f"]}, {"hits": ["a b c"]}]
        assert self.found("ferry to Oslo", "Oslo ferry", "a ferry Oslo", results=results).looping

    def test_rephrased_searches_without_hits_are_a_loop(self) -> None:
        queries = ("ferry from Kiel to Oslo", "ferries Kiel to Oslo", "the Kiel Oslo ferry")
        assert self.found(*queries, results=[{"hits": []}] * 3).looping

    def test_new_results_are_progress(self) -> None:
        results = [{"hits": [f"page {number} about ferries"]} for number in range(3)]
        assert self.found("ferry to Oslo", "Oslo ferry", "ferries Oslo", results=results).wasted_calls == 0

    @pytest.mark.parametrize(
        "queries",
        [
            ("ferry from Kiel to Oslo", "ferry from Kiel to Bergen", "ferry from Kiel to Gdynia"),
            ("invoice number 7", "invoice number 8", "invoice number 9"),
            ("opening hours library", "bus stop nearby", "dentist phone number"),
            ("Oslo", "Bergen", "Kiel"),
        ],
    )
    def test_searches_for_different_subjects_are_no_repetition(self, queries: tuple[str, ...]) -> None:
        assert self.found(*queries, results=[{"hits": []}] * 3).wasted_calls == 0

    def test_searches_for_different_pages_are_no_repetition(self) -> None:
        run = Run()
        for page in range(4):
            run.call("search_web", {"query": f"ferry to Oslo{' please' * (page % 2)}", "page": page}, {"hits": []})
        assert run.found().wasted_calls == 0

    def test_a_change_in_between_justifies_a_repeated_search(self) -> None:
        run = Run()
        for query in ("ferry to Oslo", "Oslo ferry", "ferries Oslo", "Oslo ferries"):
            run.call("search_web", {"query": query}, {"hits": []}).call("update_index", {"for": query}, "done")
        assert run.found().wasted_calls == 0

    def test_rephrased_calls_of_a_changing_tool_are_no_repetition(self) -> None:
        assert self.found("call mum at noon", "call mum noon", "mum call noon", name="add_reminder").wasted_calls == 0


class TestCosmeticDifferences:
    @pytest.mark.parametrize(
        "spelled",
        [
            [{"city": "Oslo"}, {"city": "oslo"}, {"city": "OSLO."}],
            [{"page": 7}, {"page": "7"}, {"page": "7 "}],
            [{"city": "Oslo", "timestamp": 1}, {"city": "'Oslo'", "timestamp": 2}, {"city": "oslo", "timestamp": 3}],
        ],
        ids=["case and stops", "a number as a text", "quotes beside volatile keys"],
    )
    def test_cosmetic_differences_do_not_make_another_call(self, spelled: list[dict[str, Any]]) -> None:
        run = Run()
        for arguments in spelled:
            run.call("get_forecast", arguments, "rain")
        assert run.found().repeated == (1, 2)

    def test_cosmetic_differences_count_if_the_results_differ(self) -> None:
        run = Run()
        for city, rain in (("Oslo", "rain"), ("oslo", "no such city"), ("OSLO", "sun")):
            run.call("get_forecast", {"city": city}, rain)
        assert run.found().wasted_calls == 0

    def test_one_respelled_call_is_no_waste(self) -> None:
        run = Run().call("get_forecast", {"city": "Oslo"}, "rain").call("get_forecast", {"city": "oslo"}, "rain")
        assert run.call("get_forecast", {"city": "Kiel"}, "sun").found().wasted_calls == 0

    def test_rephrased_calls_with_the_same_failure_are_repetitions(self) -> None:
        run = Run()
        for text in ("ferry Kiel Oslo", "ferries Kiel to Oslo", "ferry from Kiel to Oslo"):
            run.call("search_web", {"query": text}, error="QuotaError: no calls left")
        assert run.found().repeated == (1, 2)

    def test_rephrased_calls_with_different_failures_are_progress(self) -> None:
        run = Run()
        for at, text in (
            ("end", "ferry Kiel Oslo"),
            ("start", "ferries Kiel to Oslo"),
            ("gap", "ferry from Kiel to Oslo"),
        ):
            run.call("search_web", {"query": text}, error=f"ParseError: no word at the {at}")
        assert run.found().wasted_calls == 0


class TestCode:
    def agent(self, *steps: tuple[str, str]) -> ToolLoop:
        """Return the loop of an agent that runs code without tool spans."""
        spans = []
        seen: tuple[Message, ...] = (Message("user", (Text("How many?"),)),)
        for number, (code, observed) in enumerate([*steps, ("final_answer(4)", "")]):
            start = number * SECOND
            output = (Message("assistant", (Text(f"Let me see.\n```python\n{code}\n```"),)),)
            spans.append(
                Span("t", f"m{number}", "", "chat", Kind.LLM, start, start + SECOND // 2, input=seen, output=output)
            )
            text = observed if observed.startswith("Error") else f"Observation:\n{observed}"
            seen = (Message("user", (Text(text),)),)
        return tool_loop(Trace("t", tuple(spans), "m0"))

    def test_equal_code_with_equal_observations_is_a_loop(self) -> None:
        found = self.agent(("print(rows)", "[]"), ("# once more\nprint(rows)", "[]"), ("print(rows)\n", "[]"))
        assert (found.calls, found.wasted_calls, found.looping) == (3, 2, True)
        assert found.cycles[0].span_ids == ("m0", "m1", "m2")

    def test_equal_code_with_new_observations_is_progress(self) -> None:
        assert self.agent(("print(x)", "1"), ("print(x)", "2"), ("print(x)", "3")).wasted_calls == 0

    def test_different_code_is_no_repetition(self) -> None:
        assert self.agent(("print(a)", "1"), ("print(b)", "1"), ("print(c)", "1")).wasted_calls == 0

    def failing(self, *codes: str, kind: str = "KeyError: 'price'") -> ToolLoop:
        template = (
            "Code execution failed at line '{}' due to: {}\nNow let's retry: take care not to repeat previous errors!"
        )
        return self.agent(*[(code, f"Error:\n{template.format(code.splitlines()[0], kind)}") for code in codes])

    def test_irrelevant_edits_with_the_same_error_are_a_loop(self) -> None:
        code = "rows = load('a.csv')\ntotal = sum(row['price'] for row in rows)"
        edited = [
            code,
            f"print('once more')\n{code}  # now it works",
            f"import json\n{code.replace('total', 'amount')}",
            code.replace("'", '"'),
        ]
        found = self.failing(*edited)
        assert (found.calls, found.wasted_calls, found.looping) == (4, 3, True)
        assert (found.repeated, found.written) == ((), 3)
        assert self.failing(*edited[:2]).wasted_calls == 0, "one more attempt is no waste"

    @pytest.mark.parametrize(
        "codes",
        [
            [f"page = get('https://a.example/{n}')\nrows = parse(page)" for n in range(4)],
            [f"rows = load('a.csv', skip={n})\ntotal = sum(rows)" for n in range(4)],
            ["a = load()\nb = scale(a)", "c = fetch()\nd = trim(c)", "e = query()\nf = join(e)"],
        ],
        ids=["other texts", "other numbers", "other names"],
    )
    def test_different_code_with_the_same_error_is_no_repetition(self, codes: list[str]) -> None:
        assert self.failing(*codes).wasted_calls == 0

    def test_edited_code_with_different_errors_is_progress(self) -> None:
        code = "rows = load('a.csv')\ntotal = sum(row['price'] for row in rows)"
        steps = [(f"print({n})\n{code}", f"Error:\nCode failed due to: KeyError: 'c{n}'") for n in range(4)]
        assert self.agent(*steps).wasted_calls == 0

    def test_looking_for_the_cause_between_failures_is_progress(self) -> None:
        code = "rows = load('a.csv')\ntotal = sum(row['price'] for row in rows)"
        steps: list[tuple[str, str]] = []
        for number in range(4):
            steps.append((f"print({number})\n{code}", "Error:\nCode failed due to: KeyError: 'price'"))
            steps.append((f"print(rows[{number}])", f"row {number}"))
        assert self.agent(*steps).wasted_calls == 0

    def test_edited_code_with_the_same_output_is_a_loop(self) -> None:
        code = "rows = load('a.csv')\nbest = min(rows, key=lambda row: row['price'])\nprint({})"
        shown = "{'ship': 'LH-1315', 'price': 41}"
        assert self.agent(*[(code.format(text), shown) for text in ("best", "'now', best", "best, 'x'")]).looping

    def test_edited_code_without_output_is_no_repetition(self) -> None:
        code = "rows = load('a.csv')\nbest = min(rows, key=lambda row: row['price'])\nnote(best)"
        edited = [code.replace("best", name) for name in ("best", "least", "lowest", "found")]
        assert (
            self.agent(
                *[(each, "Execution logs:\nLast output from code snippet:\nNone") for each in edited]
            ).wasted_calls
            == 0
        )

    def test_edits_in_a_long_text_with_the_same_error_are_a_loop(self) -> None:
        patch = " ".join(f"word{n}" for n in range(60))
        codes = [f"text = '{patch} v{n}'\nwrite(open('f', 'w'), text)" for n in "abcd"]
        assert self.failing(*codes, kind="SyntaxError: invalid").looping

    def test_code_without_tool_calls_is_counted_next_to_tool_calls(self) -> None:
        output = (Message("assistant", (Text("```python\nprint(rows)\n```"),)),)
        seen = (Message("user", (Text("Observation:\n[]"),)),)
        spans = [
            Span("t", f"m{n}", "", "chat", Kind.LLM, 2 * n, 2 * n + 1, input=seen, output=output) for n in range(6)
        ]
        call = ToolCall("get_rows", "", {}, "[]", None, "tool", "", 1, 2, has_arguments=True, has_result=True)
        found = tool_loop(Trace("t", tuple(spans), "m0", tool_calls=(call,)))
        assert (found.calls, found.wasted_calls, found.repeated) == (5, 3, ())

    def test_code_that_was_not_run_is_no_call(self) -> None:
        output = (Message("assistant", (Text("```python\nprint(1)\n```"),)),)
        asked = (Message("user", (Text("Again, please."),)),)
        spans = [Span("t", f"m{n}", "", "chat", Kind.LLM, n, n + 1, input=asked, output=output) for n in range(5)]
        assert tool_loop(Trace("t", tuple(spans), "m0")).calls == 0

    def test_model_calls_of_other_agents_do_not_hide_repeated_code(self) -> None:
        output = (Message("assistant", (Text("```python\nprint(rows)\n```"),)),)
        seen = (Message("user", (Text("Observation:\n[]"),)),)
        spans = []
        for n in range(4):
            spans.append(
                Span("t", f"m{n}", "", "", Kind.LLM, 4 * n, 4 * n + 1, input=seen, output=output, agent_name="a")
            )
            spans.append(Span("t", f"o{n}", "", "", Kind.LLM, 4 * n + 2, 4 * n + 3, output=output, agent_name="b"))
        assert tool_loop(Trace("t", tuple(spans), "m0")).wasted_calls == 2

    def test_an_interpreter_tool_loops_only_on_equal_code(self) -> None:
        assert times(3, "python_interpreter", {"code": "print(rows)"}, "[]").looping
        run = Run()
        for number in range(3):
            run.call("python_interpreter", {"code": f"print({number})"}, "[]")
        assert run.found().wasted_calls == 0


class TestStateChanges:
    def test_a_check_after_each_repair_step_is_no_loop(self) -> None:
        run = Run()
        for step in ("toggle_airplane_mode", "reset_apn", "reboot_device", "reseat_sim"):
            run.call(step, {}, "done").call("run_speed_test", {}, "no connection").call("get_signal", {}, "none")
        assert run.found().wasted_calls == 0

    def test_reading_something_else_changes_nothing(self) -> None:
        run = Run().call("get_line", ID, "r").call("get_plan", ID, "p").call("get_line", ID, "r")
        assert run.found().repeated == (2,)

    def test_a_changing_call_that_failed_changed_nothing(self) -> None:
        run = Run()
        for _ in range(3):
            run.call("get_line", ID, "r").call("update_line", ID, "Error: not allowed")
        (cycle,) = run.found().cycles
        assert (cycle.kind, cycle.rounds, cycle.wasted_calls) == ("cycle2", 3, 4)
        assert cycle.tools == ("get_line", "update_line")

    def test_a_new_user_message_resets_repetition(self) -> None:
        run = Run()
        for _ in range(5):
            run.call("get_balance", {}, "10 EUR").answer("You have 10 EUR.")
        assert run.found().wasted_calls == 0

    def test_a_turn_without_an_answer_does_not_reset_repetition(self) -> None:
        run = Run()
        for _ in range(5):
            run.call("get_balance", {}, "10 EUR").answer(None)
        assert run.found().looping

    def test_the_read_only_hint_outweighs_the_tool_name(self) -> None:
        for read_only, wasted in ((None, 1), (True, 1), (False, 0)):
            tool = ToolDefinition("run_speed_test", read_only=read_only)
            run = Run(tools=(tool,)).call("get_line", ID, "r").call("run_speed_test", {}, "5").call("get_line", ID, "r")
            assert run.found().wasted_calls == wasted, read_only


class TestRepeatedChanges:
    def test_a_change_repeated_with_the_same_result_is_a_loop(self) -> None:
        found = times(64, "update_line", ID, {"id": 7, "status": "Active"})
        assert (found.wasted_calls, found.looping) == (63, True)

    def test_a_change_made_twice_is_no_waste(self) -> None:
        assert times(2, "update_line", ID, "updated").wasted_calls == 0

    def test_a_new_result_after_each_change_is_progress(self) -> None:
        run = Run()
        for total in range(5):
            run.call("refuel_data", {"gb": 2}, {"total": total})
        assert run.found().wasted_calls == 0

    def test_new_results_read_between_changes_are_progress(self) -> None:
        run = Run()
        for page in range(10):
            run.call("submit_step", {}, "accepted").call("read_page", {}, f"page {page}")
        assert run.found().wasted_calls == 0

    def test_equal_results_read_between_changes_are_no_progress(self) -> None:
        run = Run()
        for _ in range(10):
            run.call("update_line", ID, "updated").call("get_line", ID, "suspended")
        found = run.found()
        assert found.looping
        assert found.cycles[0].kind == "cycle2"
        assert all(index % 2 == 0 for index in found.repeated)  # the reading calls check a change

    @pytest.mark.parametrize("name", ["scroll", "click_next", "press_key", "add_item"])
    def test_stepwise_calls_that_return_ok_are_progress(self, name: str) -> None:
        answers: list[Any] = ["ok", "", None, True, [], {"success": True}, {"status": "OK"}, '{"status": "ok"}']
        for answer in answers:
            assert times(10, name, {"to": "down"}, answer).wasted_calls == 0, answer

    def test_stepwise_calls_that_show_the_same_state_are_a_loop(self) -> None:
        assert times(10, "click_next", {}, "Page 3 of 3").looping


class TestPolling:
    def test_a_new_result_at_the_end_excuses_the_earlier_polls(self) -> None:
        run = Run()
        for _ in range(20):
            run.call("get_job", ID, {"status": "running"})
        assert run.call("get_job", ID, {"status": "done"}).found().wasted_calls == 0

    def test_a_new_result_excuses_the_polls_before_a_wait_too(self) -> None:
        run = Run().call("get_job", ID, "running").call("get_job", ID, "running")
        run.call("get_job", ID, "running", wait=3.0).call("get_job", ID, "done")
        assert run.found().wasted_calls == 0

    def test_repetition_counts_again_after_a_new_result(self) -> None:
        run = Run()
        for status in ("running", "running", "done", "done", "done"):
            run.call("get_job", ID, status)
        assert run.found().repeated == (3, 4)

    def test_calls_at_least_two_seconds_apart_are_polling(self) -> None:
        assert times(10, "get_job", ID, "running", wait=2.0).wasted_calls == 0
        assert times(10, "get_job", ID, "running", wait=1.9).looping

    def test_one_wait_between_calls_covers_all_polled_jobs(self) -> None:
        run = Run()
        for _ in range(5):
            run.call("get_job", {"id": 1}, "running", wait=5.0).call("get_job", {"id": 2}, "running")
        assert run.found().wasted_calls == 0

    @pytest.mark.parametrize("name", ["sleep", "wait_for_seconds", "mcp__clock__wait"])
    def test_calls_of_a_wait_tool_in_between_make_polling(self, name: str) -> None:
        run = Run()
        for _ in range(5):
            run.call("get_job", ID, "running").call(name, {"seconds": 5}, "ok")
        assert run.found().wasted_calls == 0

    def test_long_model_time_between_calls_is_no_wait(self) -> None:
        run = Run()
        for _ in range(4):
            for _ in range(5):
                run.model("")
            run.call("get_job", ID, "running")
        assert run.found().looping

    @pytest.mark.parametrize("missing", ["model_spans", "tool_spans"])
    def test_polling_needs_longer_waits_without_model_or_tool_spans(self, missing: str) -> None:
        for wait, looping in ((5.0, True), (12.0, False)):
            run = Run(model_spans=missing != "model_spans", tool_spans=missing != "tool_spans")
            for _ in range(4):
                run.call("get_job", ID, "running", wait=wait)
            assert run.found().looping is looping, wait


class TestRetries:
    @pytest.mark.parametrize(
        ("error", "result"),
        [("timeout", NOTHING), (None, "Error: timeout"), (None, {"error": "timeout"}), (None, '{"isError": true}')],
    )
    def test_calls_that_repeat_the_same_error_are_wasted(self, error: str | None, result: Any) -> None:
        for name in ("get_line", "book_flight"):
            assert times(4, name, ID, result, error=error).wasted_calls == 3, name

    def test_one_immediate_retry_is_no_waste(self) -> None:
        assert times(2, "get_line", ID, error="timeout").wasted_calls == 0
        assert times(3, "get_line", ID, error="timeout").wasted_calls == 2

    def test_ids_and_times_in_an_error_are_ignored(self) -> None:
        run = Run()
        for second in (10, 20, 30):
            run.call("get_line", ID, error=f"2024-05-01T10:00:{second}Z request 00000000000000{second} failed")
        assert run.found().looping

    def test_a_different_error_is_progress(self) -> None:
        run = Run()
        for left in (3, 2, 1):
            run.call("get_line", ID, error=f"wrong PIN, {left} attempts left")
        assert run.found().wasted_calls == 0

    def test_retries_one_second_apart_are_no_waste(self) -> None:
        assert times(5, "get_line", ID, error="timeout", wait=1.0).wasted_calls == 0

    def test_retries_with_growing_waits_are_no_waste(self) -> None:
        run = Run()
        for wait in (0.0, 0.25, 0.5, 0.75):
            run.call("get_line", ID, error="timeout", wait=wait)
        assert run.found().wasted_calls == 0

    def test_retries_with_growing_waits_are_no_waste_without_model_spans(self) -> None:
        run = Run(model_spans=False)
        for wait in (0.0, 1.0, 4.0, 12.0):
            run.call("get_line", ID, error="timeout", wait=wait)
        assert run.found().wasted_calls == 0

    def test_a_single_longer_wait_is_no_back_off_without_model_spans(self) -> None:
        run = Run(model_spans=False)
        for wait in (0.0, 0.0, 1.0, 1.0):
            run.call("get_line", ID, error="timeout", wait=wait)
        assert run.found().looping

    def test_growing_waits_after_successful_calls_are_a_loop(self) -> None:
        run = Run()
        for wait in (0.0, 0.25, 0.5, 1.0, 1.5):
            run.call("get_line", ID, "active", wait=wait)
        assert run.found().looping

    def test_a_successful_retry_is_progress(self) -> None:
        run = Run().call("get_line", ID, error="timeout").call("get_line", ID, error="timeout")
        assert run.call("get_line", ID, "active").found().wasted_calls == 0


class TestAtOnce:
    def test_parallel_calls_are_no_repetition(self) -> None:
        run = Run()
        for _ in range(4):
            run.call("get_line", ID, "active")
            run.now -= SECOND + SECOND // 4
        assert run.found().wasted_calls == 0

    def test_calls_requested_by_one_model_output_are_no_repetition(self) -> None:
        asked = self.of_one_model_call(SECOND)
        assert tool_loop(asked).wasted_calls == 0

    def test_equal_calls_in_one_model_input_are_repetitions(self) -> None:
        trace = self.of_one_model_call(0)
        assert tool_loop(trace).wasted_calls == 3

    def of_one_model_call(self, start_ns: int) -> Trace:
        spans = Run().model("").trace().spans
        call = ToolCall(
            "get_line", "", ID, "active", None, "llm0", "", start_ns, start_ns, has_arguments=True, has_result=True
        )
        return Trace("t", spans, "", tool_calls=(call,) * 4)

    def test_equal_calls_of_different_agents_are_no_repetition(self) -> None:
        run = Run()
        for agent in ("anna", "bert", "carl"):
            run.call("get_line", ID, "active", agent=agent)
        assert run.found().wasted_calls == 0

    def test_equal_calls_of_separate_subagents_with_one_name_are_no_repetition(self) -> None:
        run = Run()
        for number in range(3):
            run.call("search_web_in_depth", {"task": number}, f"report {number}")
            run.agent(f"sub{number}", "researcher", f"tool{2 * number}")
            run.call("get_line", ID, "active", agent="researcher", inside=f"sub{number}")
        assert run.found().wasted_calls == 0

    def test_equal_calls_inside_tool_spans_are_repetitions(self) -> None:
        run = Run()
        for number in range(3):
            run.call("query_notebook", {"cell": number}, f"cell {number}")
            run.call("get_line", ID, "active", inside=f"tool{2 * number}")
        assert run.found().repeated == (3, 5)

    def test_equal_calls_under_one_agent_span_are_a_loop(self) -> None:
        run = Run().agent("root", "helper", "")
        for _ in range(3):
            run.call("get_line", ID, "active", agent="helper", inside="root")
        assert run.found().looping


class TestCycles:
    @pytest.mark.parametrize(("period", "kind"), [(1, "repeat"), (2, "cycle2"), (3, "cycle3")])
    def test_the_kind_of_a_cycle_names_its_period(self, period: int, kind: str) -> None:
        run = Run()
        for index in range(4 * period):
            run.call("get_line", {"id": index % period}, f"line {index % period}")
        (cycle,) = run.found().cycles
        assert (cycle.kind, cycle.rounds, cycle.wasted_calls) == (kind, 4, 3 * period)

    def test_two_and_a_half_rounds_are_no_loop(self) -> None:
        run = Run()
        for index in range(5):
            run.call("get_line", {"id": index % 2}, "active")
        found = run.found()
        assert (found.wasted_calls, found.looping) == (3, False)

    def test_a_cycle_of_five_calls_is_reported_as_five_repeats(self) -> None:
        run = Run()
        for index in range(20):
            run.call("get_line", {"id": index % 5}, "active")
        cycles = run.found().cycles
        assert [(cycle.kind, cycle.rounds) for cycle in cycles] == [("repeat", 4)] * 5

    def test_rereading_between_new_results_wastes_calls_but_is_no_loop(self) -> None:
        run = Run()
        for page in range(10):
            run.call("get_filters", {}, "all").call("list_orders", {"page": page}, f"orders {page}")
        found = run.found()
        assert (found.wasted_calls, found.looping) == (9, False)

    def test_thinking_calls_in_between_do_not_hide_a_loop(self) -> None:
        run = Run()
        for number in range(4):
            run.call("book_flight", ID, "Error: wrong amount").call("think", {"thought": f"hm {number % 2}"}, "")
        (cycle,) = run.found().cycles
        assert (cycle.kind, cycle.rounds, cycle.tools) == ("repeat", 4, ("book_flight",))

    def test_a_repeated_thinking_call_is_a_loop(self) -> None:
        assert times(5, "think", {"thought": "hm"}, "").looping


class TestPingPong:
    def hand_over(self, rounds: int, texts: Any = lambda _: "", extra: Any = lambda run, agent, n: run) -> ToolLoop:
        run = Run()
        for number in range(rounds):
            for agent, other in (("triage", "billing"), ("billing", "triage")):
                run.model(texts(number), agent)
                extra(run, agent, number)
                run.call(f"transfer_to_{other}", {}, "transferred", agent=agent)
        return run.found()

    def test_hand_overs_back_and_forth_without_progress_are_ping_pong(self) -> None:
        found = self.hand_over(4)
        (cycle,) = found.cycles
        assert (cycle.kind, cycle.rounds, cycle.agents) == ("ping_pong", 4, ("triage", "billing"))
        assert (found.wasted_calls, found.calls, found.looping) == (6, 8, True)
        assert cycle.tools == ("transfer_to_billing", "transfer_to_triage")
        assert (cycle.seconds, cycle.tokens) == (14.5, 12 * 110)

    def test_two_rounds_are_no_loop(self) -> None:
        found = self.hand_over(2)
        assert (found.wasted_calls, found.looping) == (2, False)

    def test_repeated_words_are_no_progress(self) -> None:
        assert self.hand_over(4, texts=lambda _: "I hand you over.").looping

    def test_new_words_are_progress(self) -> None:
        assert self.hand_over(4, texts=lambda number: f"Finding {number}").wasted_calls == 0

    def test_new_findings_are_progress(self) -> None:
        def look(run: Run, agent: str, number: int) -> None:
            if agent == "billing":
                run.call("get_invoice", {"id": number}, f"invoice {number}", agent=agent)

        assert not self.hand_over(4, extra=look).looping

    def test_repeated_findings_are_no_progress(self) -> None:
        def look(run: Run, agent: str, number: int) -> None:
            run.call("get_invoice", ID, "paid", agent=agent)

        found = self.hand_over(4, extra=look)
        assert {cycle.kind for cycle in found.cycles} == {"cycle2", "ping_pong"}
        assert found.looping

    def test_uncaptured_model_text_counts_as_progress(self) -> None:
        assert self.hand_over(4, texts=lambda _: None).wasted_calls == 0

    def test_agents_without_tool_calls_can_loop(self) -> None:
        run = Run()
        for _ in range(3):
            run.model("You do it.", "triage").model("No, you do it.", "billing")
        found = run.found()
        assert (found.calls, found.wasted_calls, found.ratio, found.looping) == (0, 0, 0.0, True)
        assert len(found.cycles[0].span_ids) == 6

    def test_the_first_hand_over_is_no_waste(self) -> None:
        run = Run().model("You do it.", "triage").model("You do it.", "billing")
        for agent in ("triage", "billing", "triage", "billing"):
            run.model("You do it.", agent).call("transfer_to_other", {}, "transferred", agent=agent)
        assert run.found().repeated == (1, 2, 3)

    def test_agents_without_model_calls_are_no_ping_pong(self) -> None:
        run = Run()
        for number in range(10):
            run.agent(f"agent{number}", ("triage", "billing")[number % 2], "")
        assert run.found().cycles == ()

    def nested(self, depth: int, task: Any = lambda _: {"task": "book it"}, said: Any = lambda _: "") -> ToolLoop:
        """Return agents that call each other as nested tools."""
        run = Run().agent("agent0", "planner", "")
        for level in range(depth):
            agent, other = ("planner", "booker") if level % 2 == 0 else ("booker", "planner")
            run.model(said(level), agent, f"agent{level}")
            run.call(f"ask_{other}", task(level), NOTHING, agent=agent, inside=f"agent{level}")
            run.agent(f"agent{level + 1}", other, f"tool{level}")
        return run.found()

    def test_agents_that_delegate_one_task_to_each_other_are_ping_pong(self) -> None:
        found = self.nested(8)
        (cycle,) = found.cycles
        assert (cycle.kind, cycle.agents, found.looping) == ("ping_pong", ("planner", "booker"), True)

    def test_agents_that_delegate_different_tasks_make_progress(self) -> None:
        assert self.nested(8, task=lambda level: {"task": f"part {level}"}).wasted_calls == 0

    def test_agents_that_report_findings_while_delegating_make_progress(self) -> None:
        assert self.nested(8, said=lambda level: f"I found {level} ferries.").wasted_calls == 0

    def test_three_agents_in_turn_are_no_ping_pong(self) -> None:
        run = Run()
        for _ in range(5):
            for agent in ("a", "b", "c"):
                run.model("", agent)
        assert run.found().cycles == ()

    def test_agents_that_run_in_parallel_are_no_ping_pong(self) -> None:
        run = Run()
        for _ in range(5):
            for agent in ("a", "b"):
                run.model("", agent)
                run.now -= SECOND // 2
        assert run.found().cycles == ()

    def test_repeated_hand_overs_that_no_agent_takes_are_a_loop(self) -> None:
        assert times(10, "transfer_to_human", {}, "queued", agent="triage").looping


class TestNature:
    @pytest.mark.parametrize(
        "name",
        [
            "get_user",
            "getUser",
            "GetUser",
            "get-user",
            "crm.get_user",
            "mcp__crm__get_user",
            "mcp__crm__getUser",
            "github/list_issues",
            "functions.search:0",
            "find_user_id_by_email",
            "lookup",
            "isAvailable",
            "get_deleted_items",
            "search_cats_and_dogs",
            "user",
            "listen",
            "7",
            "",
            "工具",
            "account_status",
            "booking_details",
            "order_status",
            "payment_history",
            "weather",
            "run_query",
            "run_speed_test",
            "get_order_details",
            "jira_get_issue",
        ],
    )
    def test_reading_tools_are_recognized_by_name(self, name: str) -> None:
        assert nature(name) is Nature.READING

    @pytest.mark.parametrize(
        "name",
        [
            "create_user",
            "user_create",
            "github_create_issue",
            "crm.account_update",
            "order_pizza",
            "flight_book",
            "execute_command",
            "bash",
            "get_or_create_user",
            "find_and_replace",
            "check_in",
            "checkOut",
            "transfer_money",
            "delay_shipment",
            "list_and_delete_files",
            "press_key",
            "draft_forward",
        ],
    )
    def test_changing_tools_are_recognized_by_name(self, name: str) -> None:
        assert nature(name) is Nature.CHANGING

    @pytest.mark.parametrize(
        ("name", "expected"),
        [
            ("sleep", Nature.WAITING),
            ("pause", Nature.WAITING),
            ("think", Nature.THINKING),
            ("transfer_to_billing_agent", Nature.HAND_OVER),
            ("transfer_back_to_supervisor", Nature.HAND_OVER),
            ("handoff_to_billing", Nature.HAND_OVER),
            ("hand_over", Nature.HAND_OVER),
        ],
    )
    def test_waiting_thinking_and_hand_over_tools_are_recognized_by_name(self, name: str, expected: Nature) -> None:
        assert nature(name) is expected
        assert nature(name, read_only=True) is expected


def test_calls_that_cannot_be_compared_are_counted_as_unseen() -> None:
    blind = Run().call("get_line").call("get_line").call("get_line").call("get_bill", {"id": 1}, "x")
    assert blind.found().unseen == 3
    assert Run().call("get_line").call("get_bill").found().unseen == 0, "no tool was called twice"
    silent = Run().call("get_line", {"id": 1}).call("get_line", {"id": 1}).call("get_line", {"id": 2})
    assert silent.found().unseen == 2
    nothing = ToolDefinition("get_line", parameters={"type": "object", "properties": {}})
    assert Run(tools=(nothing,)).call("get_line", result="a").call("get_line", result="b").found().unseen == 0


class TestFailingAlike:
    """A tool that fails for one reason with varied arguments."""

    REASONS = (
        "Error: seat 12A is not on deck 3",
        "Error: seat 14C is not on deck 9",
        "Error: seat 7F is not on deck 1",
    )

    def fails(self, *errors: str, name: str = "reserve_seat", wait: float = 0.0) -> Run:
        run = Run()
        for at, error in enumerate(errors):
            run.call(name, {"seat": at, "cabin": "abcdef"[at]}, error, wait=wait if at else 0.0)
        return run

    def test_three_failures_for_one_reason_are_a_loop(self) -> None:
        found = tool_loop(self.fails(*self.REASONS).trace())
        [cycle] = found.cycles
        assert (cycle.kind, cycle.rounds, cycle.wasted_calls, found.looping) == ("failing", 3, 2, True)

    def test_the_last_line_of_a_traceback_is_the_reason(self) -> None:
        lines = [
            f'Traceback (most recent call last):\n  File "a.py", line {at}, in f\n    x = {code}\nKeyError: {key}'
            for at, code, key in ((1, "a[1]", "'b'"), (7, "c + d", "'e'"), (9, "g(h)", "'i'"))
        ]
        assert tool_loop(self.fails(*lines, name="reserve").trace()).looping

    def test_other_calls_in_between_do_not_hide_the_loop(self) -> None:
        run = Run()
        for at, error in enumerate(self.REASONS):
            run.call("reserve_seat", {"seat": at}, error).call("get_plan", {"deck": at}, f"deck {at} of the ship")
        assert tool_loop(run.trace()).looping

    @pytest.mark.parametrize(
        "errors",
        [
            ("Error: seat 12A is taken", "Error: seat 14C is taken"),
            ("Error: seat 12A is taken", "Error: no such deck as 3", "Error: the passenger is unknown"),
            ("Error: exit code 1", "Error: exit code 2", "Error: exit code 1"),
            ("Error: seat 12A is taken", "reserved", "Error: seat 14C is taken", "Error: seat 15C is taken"),
        ],
    )
    def test_two_different_unexplained_or_interrupted_failures_are_no_loop(self, errors: tuple[str, ...]) -> None:
        assert not tool_loop(self.fails(*errors).trace()).looping

    def test_not_found_errors_are_no_loop(self) -> None:
        errors = [f"Error: user {name}@x.org not found" for name in "abc"]
        assert not tool_loop(self.fails(*errors, name="find_user").trace()).looping

    def test_failures_with_back_off_are_no_loop(self) -> None:
        assert not tool_loop(self.fails(*self.REASONS, wait=1.5).trace()).looping

    def test_a_new_user_message_between_failures_prevents_a_loop(self) -> None:
        run = Run()
        for at, error in enumerate(self.REASONS):
            run.call("reserve_seat", {"seat": at}, error).answer(f"Seat {at} cannot be had. Another one?")
        assert not tool_loop(run.trace()).looping


def test_calls_requested_by_one_model_call_are_no_loop_even_if_run_one_by_one() -> None:
    together, apart = Run().model("looking"), Run()
    together._model_spans = False
    for _ in range(4):
        together.call("get_line", ID, "active")
        apart.call("get_line", ID, "active")
    assert (together.found().wasted_calls, apart.found().wasted_calls) == (0, 3)
