"""The true events of a captured session, from its script."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from tests.golden.conformance_deviations import ENDS_AT_FAILURE, TOOL_PREFIXES
from tests.lab.rig import toolbox
from tests.lab.rig.desks import DESKS
from tests.lab.rig.scenarios import SCENARIOS
from tests.support.script import Fault, Reply

REPO = Path(__file__).resolve().parents[2]
OWN = Path(__file__).parent / "captures"
SHARED = REPO.parent / "shared" / "captures"
EMITTERS = OWN.with_name("emitters")
ROOTS = {
    "committed": OWN,
    "emitters": EMITTERS,
    "shared": SHARED,
    **{f"shared-{series}": SHARED.with_name(f"captures-{series}") for series in (2, 3)},
}
"""Folders of captures; shared folders are optional."""

FERRY_SESSION = "ferry-session-7f31"
MODELS = ("gpt-4o-mini", "gemini-2.5-flash", "claude-")
FERRY_TIMEOUT = "booking backend timeout"
OTHER_SCRIPTS = frozenset({"claude_code"})
"""Sets of the third series without the ferry desk."""


@dataclass(frozen=True)
class Call:
    """A tool call. ``error`` replaces ``result``. ``known``: the script defines the result."""

    name: str
    arguments: Mapping[str, Any]
    result: Any = None
    error: str = ""
    known: bool = True


@dataclass(frozen=True)
class Turn:
    """A user message and outcome. ``steps``: calls by answer. ``finals``: accepted answers, ``None``: none."""

    user: str
    steps: tuple[tuple[Call, ...], ...]
    finals: tuple[str | None, ...]
    reasoning: tuple[str, ...] = ()

    @property
    def calls(self) -> tuple[Call, ...]:
        return tuple(call for step in self.steps for call in step)


@dataclass(frozen=True)
class Truth:
    """``tools``: parameters by tool. ``failure``: provider's refusal. ``raises``: ended with an exception."""

    turns: tuple[Turn, ...]
    tools: Mapping[str, tuple[str, ...]]
    agents: tuple[str, ...]
    session: str
    models: tuple[str, ...] = MODELS
    failure: str = ""
    raises: bool = False
    handover: bool = False

    @property
    def calls(self) -> tuple[Call, ...]:
        return tuple(call for turn in self.turns for call in turn.calls)


@dataclass(frozen=True)
class Capture:
    set: str
    scenario: str
    path: Path
    truth: Truth

    @property
    def name(self) -> str:
        return f"{self.set}/{self.scenario}"


def captures(root: Path) -> list[Capture]:
    """Return captures with known truth, by set and scenario."""
    found = []
    for path in sorted(root.glob("*/*.otlp.jsonl*")):
        name, scenario = path.parent.name, path.name.partition(".")[0]
        truth = _ferry_truth(root, name, scenario) if (root / "GROUND_TRUTH.json").exists() else _own_truth(scenario)
        if truth is not None:
            found.append(Capture(name, scenario, path, _prefixed(truth, TOOL_PREFIXES.get(name, ""))))
    return found


def _prefixed(truth: Truth, prefix: str) -> Truth:
    """Return the truth with prefixed tool names."""
    turns = tuple(
        replace(turn, steps=tuple(tuple(replace(c, name=prefix + c.name) for c in step) for step in turn.steps))
        for turn in truth.turns
    )
    return replace(truth, turns=turns, tools={prefix + name: names for name, names in truth.tools.items()})


# --- the committed captures: truth is the rig's own script -----------------------------------------------------------


def _own_truth(name: str) -> Truth | None:
    scenario = SCENARIOS.get(name)
    if scenario is None:
        return None
    outcomes = toolbox.results(scenario)
    turns = []
    failure = ""
    for exchange in scenario.dialogue.exchanges:
        replies = [reply for reply in exchange.replies if isinstance(reply, Reply)]
        refused = next((reply for reply in exchange.replies if isinstance(reply, Fault)), None)
        failure = refused.message if refused else failure
        steps = tuple(
            tuple(_own_call(call.name, dict(call.arguments), outcomes) for call in reply.calls)
            for reply in replies
            if reply.calls
        )
        final = None if refused else replies[-1].text
        thoughts = tuple(reply.reasoning for reply in replies if reply.reasoning)
        turns.append(Turn(exchange.user, steps, (final,), thoughts))
    desk = DESKS[scenario.desk]
    tools = {tool["name"]: tuple(tool["parameters"]["properties"]) for tool in toolbox.schemas(scenario.desk)}
    return Truth(tuple(turns), tools, (desk.agent,), scenario.session, failure=failure, raises=scenario.raises)


def _own_call(name: str, arguments: dict[str, Any], outcomes: Mapping[str, Mapping[str, Any]]) -> Call:
    key = f"{name} {json.dumps(arguments, separators=(',', ':'), ensure_ascii=False)}"
    outcome = outcomes[key]
    return Call(name, arguments, outcome.get("result"), outcome.get("error", ""))


# --- the ferry desk: truth is written beside the captures ------------------------------------------------------------


@cache
def _beside(root: Path, name: str) -> dict[str, Any]:
    return dict(json.loads((root / name).read_text()))


def _ferry_truth(root: Path, name: str, scenario: str) -> Truth | None:
    ground = _beside(root, "GROUND_TRUTH.json")
    entry = ground["scenarios"].get(scenario) if name not in OTHER_SCRIPTS else None
    listed = _beside(root, "INDEX.json").get(name, {})
    seen = "raised" if f"{name}/{scenario}" in ENDS_AT_FAILURE else "same"
    index = {"app_final": seen} if "emitter" in listed else listed.get(scenario)
    if entry is None or index is None:
        return None
    failed = entry["truth"].get("defect") == "llm_error"
    turns = [_ferry_turn(turn, failed) for turn in entry["turns"]]
    if index["app_final"] in ("prefixed_with_plan_text", "differs", "none"):
        # What the application itself got as the answer: frameworks join texts, or return the provider's error as one.
        app_answers = index.get("app_finals") or [None] * len(turns)
        kept = [turn.finals if index["app_final"] == "prefixed_with_plan_text" else () for turn in turns]
        turns = [
            Turn(turn.user, turn.steps, (*finals, own), turn.reasoning)
            for turn, finals, own in zip(turns, kept, app_answers, strict=True)
        ]
    return Truth(
        turns=tuple(turns),
        tools={tool: tuple(spec["parameters"]["properties"]) for tool, spec in ground["tools"].items()},
        agents=("triage_agent", "Triage Agent") if scenario == "handoff" else ("ferry_desk", "Ferry Desk"),
        session=FERRY_SESSION,
        failure="context rejected" if failed else "",
        raises=index["app_final"] in ("raised", "none"),
        handover=scenario == "handoff",
    )


def _ferry_turn(turn: Mapping[str, Any], failed: bool) -> Turn:
    steps = turn["tool_calls"][:1] if failed else turn["tool_calls"]
    return Turn(
        user=turn["user"],
        steps=tuple(tuple(_ferry_call(call["name"], call["arguments"]) for call in step) for step in steps),
        finals=(None if failed else turn["final"],),
        reasoning=tuple(turn["reasoning"][: len(steps)]),
    )


_PRICES = {"LH-0742": 58.5, "LH-1315": 41.0}
_SAILINGS = {
    ("Larvik", "Hirtshals"): [("LH-0742", "07:42", 58.5), ("LH-1315", "13:15", 41.0)],
    ("Stavanger", "Bergen"): [("SB-0900", "09:00", 35.0), ("SB-1730", "17:30", 39.0)],
}
_WEATHER = {"Larvik": ("light rain", 7), "Hirtshals": ("overcast", 11), "Stavanger": ("gale warning", 21)}


def _ferry_call(name: str, arguments: Mapping[str, Any]) -> Call:
    """Return the call with its recorded answer."""
    if name == "search_ferries":
        rows = _SAILINGS.get((arguments["origin"], arguments["destination"]), [])
        sailings = [dict(zip(("sailing_id", "departs", "price_eur"), row, strict=True)) for row in rows]
        return Call(name, arguments, {"sailings": sailings})
    if name == "port_weather":
        conditions, wind = _WEATHER[arguments["port"]]
        return Call(name, arguments, {**arguments, "conditions": conditions, "wind_ms": wind})
    if name == "booking_details":
        booking = {"sailing_id": "LH-0742", "date": "2026-05-16", "passengers": 2}
        return Call(name, arguments, {**arguments, **booking, "paid_eur": 128.0, "refund_today_eur": 64.0})
    price, passengers = _PRICES.get(arguments["sailing_id"]), arguments["passengers"]
    if price is None:
        return Call(name, arguments, error=FERRY_TIMEOUT)
    if not isinstance(passengers, int):
        return Call(name, arguments, known=False)
    return Call(name, arguments, {"booking_ref": "FJ-88213", **arguments, "total_eur": price * passengers})
