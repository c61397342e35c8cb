"""Traces that are made to cost metrics much: many calls that are nearly alike, huge and deep arguments, answers full of
values, texts on which searches go back and forth."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any

from pandaeval_otel.model import Trace
from pandaeval_otel.normal.trace import Closing, trace_of
from support.builders import Spans, gives, says, user

Make = Callable[[int], Trace]


def _trace(spans: Spans) -> Trace:
    return trace_of(spans(), "d", Closing())


def _called(number: int, call: Callable[[int], Mapping[str, Any]], answer: str = "Done: all is well.") -> Trace:
    """``number`` tool calls below one agent, then an answer."""
    spans = Spans()
    agent = spans.agent(input=(user("Please do what is needed for order 4711."),), output=(says(answer),))
    for each in range(number):
        fields = dict(call(each))
        spans.tool(agent, fields.pop("name", "search"), **fields)
    spans.llm(agent, [user("Please do what is needed for order 4711.")], answer)
    return _trace(spans)


def _nested(depth: int) -> Any:
    found: Any = 1
    for _ in range(depth):
        found = {"a": found, "b": [found]} if depth < 8 else {"a": found}
    return found


def _words(chance: random.Random, number: int) -> str:
    return " ".join(
        chance.choice(("find", "order", "price", "of", "shoe", "red", "blue", "in", "oslo")) for _ in range(number)
    )


def distinct(n: int) -> Trace:
    return _called(n, lambda i: {"arguments": {"q": f"thing {i}"}, "result": {"id": i, "name": f"thing {i}"}})


def same_call_new_results(n: int) -> Trace:
    return _called(n, lambda i: {"arguments": {"q": "oslo"}, "result": {"value": f"item {i}"}})


def same_call_same_result(n: int) -> Trace:
    return _called(n, lambda i: {"arguments": {"q": "oslo"}, "result": {"value": "item"}})


def rewordings(n: int) -> Trace:
    chance = random.Random(1)
    return _called(n, lambda i: {"arguments": {"q": _words(chance, 12)}, "result": []})


def rewordings_with_results(n: int) -> Trace:
    chance = random.Random(1)
    return _called(n, lambda i: {"arguments": {"q": _words(chance, 12)}, "result": [_words(chance, 5)]})


def long_rewordings(n: int) -> Trace:
    chance = random.Random(1)
    return _called(
        n, lambda i: {"arguments": {"q": " ".join(f"w{chance.randrange(300)}" for _ in range(80))}, "result": []}
    )


def all_fail(n: int) -> Trace:
    return _called(
        n, lambda i: {"arguments": {"q": f"x{i}"}, "result": {"error": f"timeout of {i}"}, "error": f"timeout of {i}"}
    )


def many_keys(n: int) -> Trace:
    return _called(
        n,
        lambda i: {"arguments": {f"key{j}": i * j for j in range(200)}, "result": {f"r{j}": i + j for j in range(200)}},
    )


def deep_json(n: int) -> Trace:
    return _called(n, lambda i: {"arguments": {"q": [_nested(400), i]}, "result": _nested(400)})


def json_in_text(n: int) -> Trace:
    return _called(
        n, lambda i: {"arguments": {"q": "[" * 500 + "]" * 500 + str(i)}, "result": '{"a":' * 300 + "1" + "}" * 300}
    )


def numbers_everywhere(n: int) -> Trace:
    answer = " ".join(f"{i * 7.31:.2f} EUR, order FJ-{i:05}," for i in range(n))
    return _called(
        n, lambda i: {"arguments": {"q": i}, "result": " ".join(str((i * 37 + j) * 1.13) for j in range(60))}, answer
    )


def dates_everywhere(n: int) -> Trace:
    answer = " ".join(f"on May {i % 28 + 1}, {1990 + i % 40} at {i % 24}:{i % 60:02}," for i in range(n))
    return _called(
        n,
        lambda i: {"arguments": {"q": i}, "result": " ".join(f"20{j:02}-0{j % 9 + 1}-1{i % 9}" for j in range(60))},
        answer,
    )


def names_everywhere(n: int) -> Trace:
    answer = " ".join(f"Jo{i} Smith{i}, jo.smith{i}@example.org, AB{i:06}." for i in range(n))
    return _called(
        n,
        lambda i: {"arguments": {"q": i}, "result": " ".join(f"Al{i}x{j} Brown ab{i}-{j}" for j in range(60))},
        answer,
    )


def back_and_forth(n: int) -> Trace:
    spans = Spans()
    top = spans.agent(name="top", input=(user("Do it."),), output=(says("Done."),))
    for i in range(n):
        agent = spans.agent(top, name=f"a{i % 2}", output=(says(f"your turn {i}"),))
        spans.tool(agent, f"transfer_to_a{(i + 1) % 2}", {"note": "x"}, result="ok")
    return _trace(spans)


def cycles(n: int) -> Trace:
    return _called(n, lambda i: {"name": f"t{i % 17}", "arguments": {"q": i % 17}, "result": {"at": i}})


def broken_cycles(n: int) -> Trace:
    chance = random.Random(3)
    return _called(
        n,
        lambda i: {
            "name": f"t{chance.randrange(3)}",
            "arguments": {"q": chance.randrange(3)},
            "result": chance.randrange(2),
        },
    )


def turns(n: int) -> Trace:
    spans = Spans()
    agent = spans.agent()
    said: list[Any] = []
    for i in range(n):
        said = [*said[-20:], user(f"question {i} about order {i * 7}")]
        spans.llm(agent, said, f"answer {i}: it costs {i * 1.5:.2f} EUR")
        said.append(says(f"answer {i}: it costs {i * 1.5:.2f} EUR"))
    return _trace(spans)


def growing_history(n: int) -> Trace:
    spans = Spans()
    agent = spans.agent(input=(user("go"),), output=(says("Done with 12.50 EUR."),))
    said: list[Any] = [user("go")]
    for i in range(n):
        spans.llm(agent, tuple(said), f"step {i} gives {i * 3}")
        said += [says(f"step {i} gives {i * 3}"), gives({"v": i * 11}, str(i))]
    return _trace(spans)


UNITS = (
    *("a", " ", "1", "1,", "1 ", "-", "a@", "a.", "A", "Aa ", "(", '"', "`", "*", "|", "1:", "1/", "1-", "http://"),
    *("error ", "not ", "\n", "a\n", "$1", "%1", "_a", "{", "[1,", "<a ", "#", "é", "I'm sorry, but ", "unable to "),
    *("A1-", "1.1.1.1 ", "\\", "Traceback (most recent call last):\n", "0x", "a'", "1e5 ", "May 1, "),
)
_CATASTROPHES = tuple((unit * 5000)[:5000] for unit in UNITS)


def catastrophic_texts(n: int) -> Trace:
    """Texts of 5 KB on which searches may go back and forth."""
    return _called(
        n,
        lambda i: {
            "arguments": {"q": _CATASTROPHES[i % len(_CATASTROPHES)]},
            "result": _CATASTROPHES[(i * 7 + 3) % len(_CATASTROPHES)],
        },
        "\n".join(_CATASTROPHES[: min(n, len(_CATASTROPHES))]),
    )


HOSTILE: Mapping[str, Make] = {
    make.__name__.replace("_", " "): make
    for make in (
        *(distinct, same_call_new_results, same_call_same_result, rewordings, rewordings_with_results, long_rewordings),
        *(all_fail, many_keys, deep_json, json_in_text, numbers_everywhere, dates_everywhere, names_everywhere),
        *(back_and_forth, cycles, broken_cycles, turns, growing_history, catastrophic_texts),
    )
}
