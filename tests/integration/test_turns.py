"""Every turn and conversation gets its scripted rating."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from pandaeval_collector.cli import app
from pandaeval_collector.judge.turns import turn_view
from pandaeval_lab.replay.files import Input
from pandaeval_lab.replay.trace_files import TraceFiles
from support.collector import CollectorProcess
from support.judge import JudgeAnswer, JudgeServer, rubric_of, text_of
from support.judged_files import environ, send
from support.scripted_judge import GOOD, RATED, TURN, of_turn, scripted_reply

GOLDEN = Path(__file__).parents[1] / "golden" / "captures" / "langgraph_genai"
OWN = [GOLDEN / f"{name}.otlp.jsonl" for name in ("good_session", "tool_loop", "wrong_tool", "gives_up")]
SHARED = Path(__file__).parents[3] / "shared" / "captures" / "pydantic_ai"
THEIRS = [SHARED / f"{name}.otlp.jsonl" for name in ("multi_turn", "loop", "hallucinates", "wrong_tool", "gives_up")]
LABEL = "false information"
_ASKED = re.compile(r"## \d+\. WHAT THE USER ASKED\n<<([0-9a-f]{12})>>\n(.*?)\n<</\1>>", re.DOTALL)
Result = dict[str, Any]


def prescribed(user: str, name: str) -> int:
    """Return the scripted rating of an answer."""
    return 1 + hashlib.sha256(f"{user} {name}".encode()).digest()[0] % 5


class Script:
    """Rates turns by user text. ``broken``: users with an invalid rating."""

    def __init__(self, broken: str = "") -> None:
        self._broken = broken

    def __call__(self, number: int, body: dict[str, Any]) -> JudgeAnswer:
        name = rubric_of(body)
        answers = dict(GOOD)
        asked = _ASKED.search(text_of(body["messages"][2]))
        if (name == "turn" or name in TURN) and asked is not None:
            answers[name] = of_turn(self._parts(asked[2]))
        return JudgeAnswer(scripted_reply(body["messages"], name, answers))

    def _parts(self, user: str) -> Mapping[str, Any]:
        parts: dict[str, Any] = {name: {"reason": "So.", "rating": prescribed(user, name)} for name in RATED}
        if user == self._broken:
            parts["helpfulness"] = {"reason": "So.", "rating": 6}
        wrong = {"reason": "It was made up.", "labels": [LABEL], "calls": []}
        behaved = TURN["agent_behavior_failure"] if prescribed(user, "agent") > 2 else wrong
        return {**TURN, **parts, "agent_behavior_failure": behaved}


def turns_of(files: Iterable[Path]) -> dict[tuple[str, str], tuple[str, bool]]:
    """Return user message and repetition by trace and span."""
    found: dict[tuple[str, str], tuple[str, bool]] = {}
    with TraceFiles() as run:
        for file in files:
            for request in Input(str(file)).requests():
                run.add(request)
        for trace in run.traces():
            for at in range(len(trace.turns)):
                view = turn_view(trace, at)
                repeated = len({json.dumps([c.name, c.arguments]) for c in view.tool_calls}) < len(view.tool_calls)
                found[trace.trace_id, view.span_id] = view.user_message or "", repeated
    return found


def evaluated(files: Sequence[Path], script: Script, monkeypatch: pytest.MonkeyPatch, *more: str) -> list[Result]:
    with JudgeServer(script) as server:
        for name, value in environ(server).items():
            monkeypatch.setenv(name, value)
        metrics = ",".join(f"turn.{name}" for name in TURN) + ",goal_completion"
        outcome = CliRunner().invoke(
            app, ["evaluate", *map(str, files), "--metrics", metrics, "--format", "json", *more]
        )
    assert outcome.exit_code == 0, outcome.output
    return [json.loads(line) for line in outcome.stdout.splitlines()]


def check(results: Sequence[Result], files: Sequence[Path], broken: str = "") -> None:
    """Check seven results per turn and one per session."""
    turns = turns_of(files)
    of_turns = [each for each in results if each["level"] == "turn"]
    assert Counter((each["trace_id"], each["span_id"]) for each in of_turns) == dict.fromkeys(turns, 7)
    for each in of_turns:
        user, repeated = turns[each["trace_id"], each["span_id"]]
        name = each["metric"]
        if user == broken and name == "helpfulness":
            assert (each["outcome"], each["why"]) == ("unscored", "invalid_verdict")
        elif name in RATED:
            assert each["raw"] == prescribed(user, name), (user, name)
            assert (each["score"], each["threshold"], each["scale"]) == ((each["raw"] - 1) / 4, 3.0, "1-5")
            assert each["success"] is (each["raw"] >= 3)
        elif name == "agent_behavior_failure":
            assert each["label"] == ("pass" if prescribed(user, "agent") > 2 else LABEL)
        else:
            assert each["label"] == ("repeated tool call" if repeated else "pass"), user
    sessions = {each["session_id"] for each in of_turns} - {None}
    goals = [each for each in results if each["metric"] == "goal_completion"]
    assert {each["session_id"] for each in goals} == sessions
    assert {each["score"] for each in goals} <= {1.0}
    assert {each["evaluator"]["kind"] for each in results} == {"llm"}


def test_every_turn_of_a_file_gets_the_rating_of_the_judge(monkeypatch: pytest.MonkeyPatch) -> None:
    [(broken, _)] = turns_of(OWN[1:2]).values()
    results = evaluated(OWN, Script(broken), monkeypatch)
    check(results, OWN, broken)
    session = [each for each in results if each["level"] == "turn" and each["session_id"] == _longest(results)]
    assert sorted(each["metadata"]["turn"] for each in session) == sorted([*range(len(session) // 7)] * 7)
    unscored = [each for each in results if each["outcome"] == "unscored"]
    assert [each["metric"] for each in unscored] == ["helpfulness"]


def _longest(results: Sequence[Result]) -> str:
    of_turns = Counter(each["session_id"] for each in results if each["level"] == "turn")
    return str(of_turns.most_common(1)[0][0])


@pytest.mark.slow
@pytest.mark.skipif(not SHARED.is_dir(), reason="the recordings are not part of this repository")
def test_every_turn_of_external_recordings_gets_the_rating_of_the_judge(monkeypatch: pytest.MonkeyPatch) -> None:
    check(evaluated(THEIRS, Script(), monkeypatch), THEIRS)


@pytest.mark.slow
def test_a_running_collector_rates_turns_like_a_file_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = THEIRS if SHARED.is_dir() else OWN
    expected = {each["id"] for each in evaluated(files, Script(), monkeypatch)}
    with JudgeServer(Script()) as server:
        settings = environ(server) | {"PANDAEVAL_METRICS__ENABLED": "[" + _names() + "]"}
        settings |= {"PANDAEVAL_SESSION__IDLE": "1s", "PANDAEVAL_CLOSE__QUIET": "500ms"}
        with CollectorProcess(tmp_path, settings) as collector:
            collector.start()
            send(collector, files)
            collector.until(lambda: {each["id"] for each in collector.results()} >= expected, "judged every turn")
            check([each for each in collector.results() if each["id"] in expected], files)
            assert collector.stop() == 0


def _names() -> str:
    return ", ".join((*(f"turn.{name}" for name in TURN), "session.goal_completion"))
