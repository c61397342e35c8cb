"""Many kinds of secrets, and recorded runs with planted secrets."""

from __future__ import annotations

import copy
import random
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_WORD = string.ascii_letters + string.digits
_UPPER = string.ascii_uppercase + string.digits


@dataclass(frozen=True, slots=True)
class Secret:
    """``value``: the secret; ``text``: its context."""

    value: str
    text: str


def make(draw: random.Random, number: int) -> Secret:
    """Return secrets of alternating kinds."""

    def some(count: int, of: str = _WORD) -> str:
        return "".join(draw.choice(of) for _ in range(count))

    kinds = (
        lambda: _plain(f"sk-proj-{some(40)}"),
        lambda: _plain(f"sk-ant-api03-{some(60)}"),
        lambda: _plain(f"AKIA{some(16, _UPPER)}"),
        lambda: _plain(f"ghp_{some(36)}"),
        lambda: _plain(f"xoxb-{some(12, string.digits)}-{some(24)}"),
        lambda: _plain(f"AIza{some(35)}"),
        lambda: _plain(f"glpat-{some(20)}"),
        lambda: _plain(f"eyJ{some(20)}.eyJ{some(30)}.{some(40)}"),
        lambda: _named("password: ", some(10) + "7!"),
        lambda: _named("api_key=", some(24)),
        lambda: _named("client_secret=", some(30)),
        lambda: _named("Authorization: Bearer ", some(32)),
    )
    return kinds[number % len(kinds)]()


def plant(
    draw: random.Random, recorded_runs: Sequence[Mapping[str, Any]], secret: Secret, number: int
) -> list[dict[str, Any]]:
    """Return the runs with the secret in a field that cases copy."""
    runs = copy.deepcopy([dict(each) for each in recorded_runs])
    run = draw.choice(runs)
    calls = [call for each in runs for call in each["tool_calls"]]
    tools = [tool for each in runs for tool in each["tools"]]
    note = f"Note this: {secret.text} and go on."
    match number % 6:
        case 0 if run["turns"]:
            run["turns"][0]["user"] = f"{run['turns'][0]['user']} {note}"
        case 1 if calls:
            draw.choice(calls)["arguments"] = {"note": note}
        case 2 if calls:
            draw.choice(calls)["result"] = {"deep": [{"log": note}]}
        case 3 if calls:
            draw.choice(calls)["arguments"] = {"password": secret.value}
        case 4 if tools:
            draw.choice(tools)["description"] = note
        case _:
            runs[-1]["output"] = note
    return runs


def _plain(value: str) -> Secret:
    return Secret(value, value)


def _named(name: str, value: str) -> Secret:
    return Secret(value, name + value)
