"""Traces that make metrics expensive."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any

from pandaeval_otel.model import ToolDefinition, Trace
from pandaeval_otel.normal.trace import Closing, trace_of
from support.builders import Spans, gives, says, user


def _called(number: int, call: Callable[[int], Mapping[str, Any]], answer: str = "Done: all is well.") -> Spans:
    """Return an agent with ``number`` tool calls and an answer."""
    spans = Spans()
    agent = spans.agent(input=(user("Please do what is needed for order 4711."),), output=(says(answer),))
    for each in range(number):
        fields = dict(call(each))
        spans.tool(agent, fields.pop("name", "search"), **fields)
    spans.llm(agent, [user("Please do what is needed for order 4711.")], answer)
    return spans


@cache
def _nested(depth: int) -> Any:
    found: Any = 1
    for _ in range(depth):
        found = {"a": found, "b": [found]} if depth < 8 else {"a": found}
    return found


def _words(chance: random.Random, number: int) -> str:
    return " ".join(
        chance.choice(("find", "order", "price", "of", "shoe", "red", "blue", "in", "oslo")) for _ in range(number)
    )


def distinct(n: int) -> Spans:
    return _called(n, lambda i: {"arguments": {"q": f"thing {i}"}, "result": {"id": i, "name": f"thing {i}"}})


def same_call_new_results(n: int) -> Spans:
    return _called(n, lambda i: {"arguments": {"q": "oslo"}, "result": {"value": f"item {i}"}})


def same_call_same_result(n: int) -> Spans:
    return _called(n, lambda i: {"arguments": {"q": "oslo"}, "result": {"value": "item"}})


def rewordings(n: int) -> Spans:
    chance = random.Random(1)
    return _called(n, lambda i: {"arguments": {"q": _words(chance, 12)}, "result": []})


def rewordings_with_results(n: int) -> Spans:
    chance = random.Random(1)
    return _called(n, lambda i: {"arguments": {"q": _words(chance, 12)}, "result": [_words(chance, 5)]})


def long_rewordings(n: int) -> Spans:
    chance = random.Random(1)
    return _called(
        n, lambda i: {"arguments": {"q": " ".join(f"w{chance.randrange(300)}" for _ in range(80))}, "result": []}
    )


def all_fail(n: int) -> Spans:
    return _called(
        n, lambda i: {"arguments": {"q": f"x{i}"}, "result": {"error": f"timeout of {i}"}, "error": f"timeout of {i}"}
    )


def many_keys(n: int) -> Spans:
    return _called(
        n,
        lambda i: {"arguments": {f"key{j}": i * j for j in range(200)}, "result": {f"r{j}": i + j for j in range(200)}},
    )


def deep_json(n: int) -> Spans:
    return _called(n, lambda i: {"arguments": {"q": [_nested(400), i]}, "result": _nested(400)})


def json_in_text(n: int) -> Spans:
    return _called(
        n, lambda i: {"arguments": {"q": "[" * 500 + "]" * 500 + str(i)}, "result": '{"a":' * 300 + "1" + "}" * 300}
    )


def numbers_everywhere(n: int) -> Spans:
    answer = " ".join(f"{i * 7.31:.2f} EUR, order FJ-{i:05}," for i in range(n))
    return _called(
        n, lambda i: {"arguments": {"q": i}, "result": " ".join(str((i * 37 + j) * 1.13) for j in range(60))}, answer
    )


def dates_everywhere(n: int) -> Spans:
    answer = " ".join(f"on May {i % 28 + 1}, {1990 + i % 40} at {i % 24}:{i % 60:02}," for i in range(n))
    return _called(
        n,
        lambda i: {"arguments": {"q": i}, "result": " ".join(f"20{j:02}-0{j % 9 + 1}-1{i % 9}" for j in range(60))},
        answer,
    )


def names_everywhere(n: int) -> Spans:
    answer = " ".join(f"Jo{i} Smith{i}, jo.smith{i}@example.org, AB{i:06}." for i in range(n))
    return _called(
        n,
        lambda i: {"arguments": {"q": i}, "result": " ".join(f"Al{i}x{j} Brown ab{i}-{j}" for j in range(60))},
        answer,
    )


def back_and_forth(n: int) -> Spans:
    spans = Spans()
    top = spans.agent(name="top", input=(user("Do it."),), output=(says("Done."),))
    for i in range(n):
        agent = spans.agent(top, name=f"a{i % 2}", output=(says(f"your turn {i}"),))
        spans.tool(agent, f"transfer_to_a{(i + 1) % 2}", {"note": "x"}, result="ok")
    return spans


def cycles(n: int) -> Spans:
    return _called(n, lambda i: {"name": f"t{i % 17}", "arguments": {"q": i % 17}, "result": {"at": i}})


def broken_cycles(n: int) -> Spans:
    chance = random.Random(3)
    return _called(
        n,
        lambda i: {
            "name": f"t{chance.randrange(3)}",
            "arguments": {"q": chance.randrange(3)},
            "result": chance.randrange(2),
        },
    )


def turns(n: int) -> Spans:
    spans = Spans()
    agent = spans.agent()
    history: list[Any] = []
    for i in range(n):
        history = [*history[-20:], user(f"question {i} about order {i * 7}")]
        spans.llm(agent, history, f"answer {i}: it costs {i * 1.5:.2f} EUR")
        history.append(says(f"answer {i}: it costs {i * 1.5:.2f} EUR"))
    return spans


def growing_history(n: int) -> Spans:
    spans = Spans()
    agent = spans.agent(input=(user("go"),), output=(says("Done with 12.50 EUR."),))
    history: list[Any] = [user("go")]
    for i in range(n):
        spans.llm(agent, tuple(history), f"step {i} gives {i * 3}")
        history += [says(f"step {i} gives {i * 3}"), gives({"v": i * 11}, str(i))]
    return spans


UNITS = (
    *("a", " ", "1", "1,", "1 ", "-", "a@", "a.", "A", "Aa ", "(", '"', "`", "*", "|", "1:", "1/", "1-", "http://"),
    *("error ", "not ", "\n", "a\n", "$1", "%1", "_a", "{", "[1,", "<a ", "#", "é", "I'm sorry, but ", "unable to "),
    *("A1-", "1.1.1.1 ", "\\", "Traceback (most recent call last):\n", "0x", "a'", "1e5 ", "May 1, "),
)
_CATASTROPHES = tuple((unit * 5000)[:5000] for unit in UNITS)


def catastrophic_texts(n: int) -> Spans:
    return _called(
        n,
        lambda i: {
            "arguments": {"q": _CATASTROPHES[i % len(_CATASTROPHES)]},
            "result": _CATASTROPHES[(i * 7 + 3) % len(_CATASTROPHES)],
        },
        "\n".join(_CATASTROPHES[: min(n, len(_CATASTROPHES))]),
    )


def long_values(n: int) -> Spans:
    """One number of ``40 * n`` digits everywhere."""
    number = "1" * 40 * n
    spans = Spans()
    agent = spans.agent(input=(user(number),), output=(says(number),))
    spans.tool(agent, "search", {"q": number}, result=number)
    spans.llm(agent, [user(number)], number)
    return spans


def periodic_values(n: int) -> Spans:
    number = "1a-" * 13 * n
    return _called(4, lambda i: {"arguments": {"q": number}, "result": f"{number}{i}"}, f"It is {number}0.")


def nested_copies(n: int) -> Spans:
    spans = Spans()
    inner = spans.agent(input=(user("Please do it."),), output=(says("Done."),))
    for i in range(n):
        inner = spans.tool(inner, "search", {"q": "oslo"}, result={"at": 1}, start_ns=i + 1, end_ns=10**9 - i)
    return spans


def nested_agents(n: int) -> Spans:
    spans = Spans()
    inner = spans.agent(input=(user("Please do it."),), output=(says("Done."),), end_ns=10**9)
    for i in range(n):
        inner = spans.agent(
            inner, f"a{i}", input=(user("Do it."),), output=(says("Done."),), start_ns=i + 1, end_ns=10**9 - i
        )
    return spans


def failing_code(n: int) -> Spans:
    chance = random.Random(2)

    def call(i: int) -> dict[str, Any]:
        code = "\n".join(f"{_words(chance, 1)}_{j} = {_words(chance, 1)}('{_words(chance, 2)}', {i})" for j in range(6))
        error = f"NameError: name '{_words(chance, 1)}_{i}' is not defined"
        return {"name": "python_interpreter", "arguments": {"code": code}, "result": error, "error": error}

    return _called(n, call)


def written_code(n: int) -> Spans:
    """Code in model answers, with its outcome in the next input."""
    spans = Spans()
    agent = spans.agent(input=(user("Please do it."),), output=(says("Done."),))
    for i in range(n):
        spans.llm(
            agent, [user(f"Observation: NameError: name 'v{i}' is not defined")], f"```py\nv{i} = find({i % 5})\n```"
        )
    return spans


def opened_code(n: int) -> Spans:
    """An answer full of code starts, and code full of message starts."""
    spans = Spans()
    agent = spans.agent(input=(user("Please do it."),), output=(says("Done."),))
    spans.llm(agent, [user("Please do it.")], "<code>" * 100 * n)
    for _ in range(4):
        code = f"x = 1\n{'print ' * min(3_000, 10 * n)}()!"
        spans.tool(agent, "python_interpreter", {"code": code}, result="NameError: x", error="NameError: x")
    spans.llm(agent, [user("Observation: 1")], "Done.")
    return spans


def changing_fails(n: int) -> Spans:
    return _called(
        n,
        lambda i: {
            "name": f"update_order_{i}",
            "arguments": {"id": i},
            "result": "ok" if i % 9 == 0 and i < n // 2 else {"error": f"rejected {i}"},
            "error": None if i % 9 == 0 and i < n // 2 else f"rejected {i}",
        },
    )


def many_tools(n: int) -> Spans:
    tools = tuple(ToolDefinition(f"search_{i}", f"Searches for {i}.", {"type": "object"}) for i in range(n))
    spans = Spans()
    agent = spans.agent(input=(user("Please do it."),), output=(says("Done."),), tools=tools)
    for i in range(n):
        spans.tool(agent, f"search_{i}", {"q": f"thing {i}"}, result={"id": i})
    return spans


def sentences(n: int) -> Spans:
    text = " ".join(f"I could not update order {i}, sorry; it costs {i}.50 EUR on May {i % 40}." for i in range(n))
    return _called(2, lambda i: {"arguments": {"q": text}, "result": text}, text)


SPANS: Mapping[str, Callable[[int], Spans]] = {
    make.__name__.replace("_", " "): make
    for make in (
        *(distinct, same_call_new_results, same_call_same_result, rewordings, rewordings_with_results, long_rewordings),
        *(all_fail, many_keys, deep_json, json_in_text, numbers_everywhere, dates_everywhere, names_everywhere),
        *(back_and_forth, cycles, broken_cycles, turns, growing_history, catastrophic_texts),
        *(long_values, periodic_values, nested_copies, nested_agents, failing_code, written_code, opened_code),
        *(changing_fails, many_tools, sentences),
    )
}
"""Spans by kind; they grow with the number."""


def _trace(make: Callable[[int], Spans], n: int) -> Trace:
    return trace_of(make(n)(), "d", Closing())


HOSTILE: Mapping[str, Callable[[int], Trace]] = {name: partial(_trace, make) for name, make in SPANS.items()}
