"""Live trials of several traces: graded whole when their session is over, and in no part before."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from pandaeval_collector.exporters.delivery import MEMBERS
from pandaeval_collector.pipeline.line import session_trials
from pandaeval_collector.pipeline.line.handed import with_contents
from pandaeval_collector.receivers.files import Input
from pandaeval_collector.runs.filerun import FileRun
from pandaeval_collector.scoring.cases.files import read_suite
from pandaeval_collector.scoring.evaluator import Evaluator, EvaluatorSettings
from pandaeval_collector.scoring.evaluator.grading import TrialGrader
from pandaeval_collector.store.finding import Finder
from pandaeval_collector.store.wanted import Wanted
from pandaeval_collector.trials.passk.attempts import trials
from pandaeval_otel._proto.session_service_pb2 import Member
from support.chained import turn
from support.collector import standing
from support.embedder import WordEmbedder
from support.line import RunningLine
from support.made_traces import MadeTrace
from support.trials import run, write

SUITE = [
    {"id": "send", "expected_tools": [{"tool_name": "find"}, {"tool_name": "send"}], "inputs": {"task": "Send it"}},
    {"id": "talk", "interactions": [{"expected_tools": []}, {"expected_tools": [{"tool_name": "send"}]}]},
    {"id": "find", "expected_tools": [{"tool_name": "find"}], "inputs": {"task": "And now?"}},
]
ENABLED = frozenset({"trace.response", "trial.trial_correct", "trial.tool_correctness"})
FIND, SEND = [("find", {})], [("send", {})]
QUIET, OVER = 11.0, 1000.0


@pytest.fixture
async def line(tmp_path: Path) -> AsyncIterator[RunningLine]:
    (tmp_path / "suite.json").write_text(json.dumps(SUITE))
    settings = EvaluatorSettings(enabled=ENABLED, cases=str(tmp_path / "suite.json"))
    async with RunningLine(tmp_path / "data", settings=settings) as running:
        yield running


async def send(line: RunningLine, *runs: Mapping[str, Any]) -> None:
    path = write(line.folder.parent / "t.jsonl", runs)
    for request in Input(str(path)).requests():
        await line.pipeline.traces(request.data)  # type: ignore[union-attr]
    await line.wait(QUIET)


def told(line: RunningLine, metric: str = "trial_correct") -> dict[int, tuple[float | None, str, list[int]]]:
    """What stands of a metric of level trial: by the trace that it stands at, score, trial and traces."""
    found = [
        each for each in standing(line.results()).values() if each["level"] == "trial" and each["metric"] == metric
    ]
    return {
        int(each["trace_id"], 16): (
            each["score"],
            each["metadata"]["trial"],
            [int(id_, 16) for id_ in each["metadata"]["traces"]],
        )
        for each in found
    }


async def test_the_traces_of_a_trial_are_graded_together_when_their_session_is_over(line: RunningLine) -> None:
    await send(
        line,
        run(1, case="send", trial="7", calls=FIND, session="s"),
        run(2, case="send", trial="7", calls=SEND, session="s"),
        run(3, case="send", trial="8", calls=SEND, session="t"),
        run(4, case="send", calls=[*FIND, *SEND]),
    )
    assert told(line) == {4: (1.0, f"{4:032x}", [4])}  # without a session it is a trial by itself
    await line.wait(OVER)
    assert told(line) == {4: (1.0, f"{4:032x}", [4]), 2: (1.0, "7", [1, 2]), 3: (0.0, "8", [3])}


async def test_a_session_says_the_same_as_a_file(line: RunningLine, tmp_path: Path) -> None:
    runs = [
        run(1, task="Send it", calls=FIND, session="s"),
        run(2, task="And now?", calls=SEND, session="s"),  # goes with the trace before it, whatever its input is
        run(3, case="talk", trial="1", session="u"),
        run(4, case="talk", trial="1", calls=SEND, session="u"),
        run(5, case="talk", trial="2", session="u"),
        run(6, case="nobody", calls=SEND, session="u"),
        run(7, task="And now?", calls=FIND, session="v"),
    ]
    await send(line, *runs)
    await line.wait(OVER)
    assert told(line) == {2: (1.0, "s", [1, 2]), 4: (1.0, "1", [3, 4]), 5: (0.0, "2", [5]), 7: (1.0, "v", [7])}
    evaluator = Evaluator(WordEmbedder(), EvaluatorSettings(enabled=ENABLED))
    with FileRun(evaluator, grader=TrialGrader(evaluator, read_suite(tmp_path / "suite.json"))) as file:
        for request in Input(str(tmp_path / "t.jsonl")).requests():
            file.add(request)
        of_file = {each.id: each.score for each in file.results() if each.unit.level == "trial"}
    assert of_file == {each["id"]: each["score"] for each in line.results() if each["level"] == "trial"}


async def test_what_comes_after_a_session_was_over_takes_the_place_of_its_part(line: RunningLine) -> None:
    await send(line, run(1, case="send", trial="7", calls=FIND, session="s"))
    await line.wait(OVER)
    assert told(line) == {1: (0.0, "7", [1])}
    await line.restart()
    await send(line, run(2, case="send", trial="7", calls=SEND, session="s"))
    await line.wait(OVER)
    assert told(line) == {1: (None, "7", [1]), 2: (1.0, "7", [1, 2])}
    assert told(line, "tool_correctness") == {1: (None, "7", [1]), 2: (1.0, "7", [1, 2])}
    (case,) = trials(line.results()).cases
    assert [*case.trials.values()] == [True]


async def test_what_is_not_kept_leaves_the_trial_without_a_score(
    line: RunningLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_trials, "MOST_TRACES", 2)
    await send(line, *(run(n, case="send", trial="7", calls=FIND, session="s") for n in (1, 2, 3)))
    await line.wait(OVER)
    assert told(line) == {3: (None, "7", [1, 2, 3])}
    assert "evaluate --cases" in line.results()[-1]["reason"]
    await send(line, run(4, case="send", calls=SEND, session="t"))
    monkeypatch.setattr(line.store.reads, "contents", lambda trace_id: [])
    await line.wait(OVER)
    (last,) = (each for each in line.results() if each["session_id"] == "t" and each["level"] == "trial")
    assert (last["metric"], last["why"]) == ("trial_correct", "insufficient_evidence")
    assert "are not kept here" in last["reason"]


async def test_a_part_that_nothing_told_of_is_graded_alone_until_it_goes_on(tmp_path: Path) -> None:
    """Chained by responses: that the first one is of a session is known with the second."""
    (tmp_path / "suite.json").write_text(json.dumps([{"id": "desk", "required_order": ["find"]}]))
    settings = EvaluatorSettings(enabled=ENABLED, cases=str(tmp_path / "suite.json"))
    first, second = (of_case(turn(n, [f"resp_{n}"], f"resp_{n - 1}" if n > 1 else ""), "desk") for n in (1, 2))
    async with RunningLine(tmp_path / "data", settings=settings) as line:
        await line.send(first)
        await line.wait(QUIET)
        assert told(line) == {1: (0.0, f"{1:032x}", [1])}
        await line.send(second)
        await line.wait(QUIET)
        await line.wait(OVER)
        (session,) = {each["session_id"] for each in line.results() if each["level"] == "trial"} - {None}
        assert told(line) == {1: (None, session, [1]), 2: (0.0, session, [1, 2])}


async def test_the_owner_of_a_session_grades_what_it_was_sent_and_says_of_the_rest_why_not(tmp_path: Path) -> None:
    (tmp_path / "suite.json").write_text(json.dumps(SUITE))
    settings = EvaluatorSettings(enabled=ENABLED, cases=str(tmp_path / "suite.json"))
    runs = [
        run(1, case="send", calls=FIND, session="s"),
        run(2, case="send", calls=SEND, session="s"),
        run(3, case="send", calls=FIND, session="t"),
        run(4, task="Send it", calls=FIND, session="u"),
        run(5, task="And then?", calls=SEND, session="u"),  # of no case by itself: it goes with the trace before it
    ]
    async with (
        RunningLine(tmp_path / "forwarder", settings=settings, sessions="elsewhere") as forwarder,
        RunningLine(tmp_path / "owner", settings=settings) as owner,
    ):
        await send(forwarder, *runs)
        await forwarder.wait(OVER)
        assert told(forwarder) == {}
        sent = [row.body for row in forwarder.store.reads.outbox_after(MEMBERS, 0)]
        most = {f"{3:032x}": 10}  # too large to be handed over
        full = [
            with_contents(
                each, forwarder.store.reads.contents, most.get(Member.FromString(each).trace_id.hex(), 1 << 20)
            )
            for each in sent
        ]
        await owner.pipeline.take_members(full)
        await owner.wait(OVER)
        assert told(owner) == {2: (1.0, "s", [1, 2]), 3: (None, "t", [3]), 5: (1.0, "u", [4, 5])}
        (untold,) = (each for each in owner.results() if each["session_id"] == "t" and each["level"] == "trial")
        assert "sessions shared by collectors" in untold["reason"]


async def test_a_trial_is_found_with_its_trace_and_counts_as_bad_if_it_is_not_correct(line: RunningLine) -> None:
    detour = [("look", {}), *FIND, *SEND]
    suite = json.loads((line.folder.parent / "suite.json").read_text())
    suite[0]["thresholds"] = {"tool_correctness": 0.5}
    (line.folder.parent / "suite.json").write_text(json.dumps(suite))
    await line.restart()
    await send(line, run(1, case="send", calls=detour), run(2, case="send", calls=[("look", {})]))
    finder = Finder(line.folder)
    bad, good = finder.traces(Wanted()).rows
    finder.close()
    assert (bad.failed, bad.worst, good.failed) == (True, 0.0, False)
    assert bad.results["trial.trial_correct"]["score"] == 0.0
    assert good.results["trial.trial_correct"]["score"] == 1.0
    assert good.results["trial.tool_correctness"]["score"] < 1.0


def of_case(trace: MadeTrace, case: str) -> MadeTrace:
    """The same, naming a case."""
    for span in trace.spans:
        span.attributes.add(key="pandaeval.case.id").value.string_value = case
    return trace
