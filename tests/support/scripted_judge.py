"""A scripted judge in this process; answers by rubric name."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pandaeval_collector.base.score import Finding, Unscored
from pandaeval_collector.judge.call import ModelAnswer, ModelCall
from pandaeval_collector.judge.client import Judge, JudgeClient, NoVerdictError
from pandaeval_collector.judge.pack import pack
from pandaeval_collector.scoring.metric import Texts, TraceContext, TraceMetric
from pandaeval_otel.model import Trace

Fields = Mapping[str, Any]
Answers = Mapping[str, Fields | Sequence[Fields] | Callable[[str], Fields]]
"""Verdict fields by rubric, a sequence, or a function of the question."""

_ECHO = re.compile(r'Set "echo" to ([0-9a-f]{8})')
_PART = re.compile(r'^"(\w+)": an object \(', re.MULTILINE)
_NUMBERS = re.compile(r'"call": (\d+)')
CRITERIA = "# Criteria\n"


def record_of(messages: Sequence[Mapping[str, str]]) -> str:
    agent, run = messages[1]["content"].rpartition(CRITERIA)[0], messages[2]["content"].removeprefix("# Run")
    return f"{agent.strip()}\n\n{run.strip()}".strip()


def question_in(messages: Sequence[Mapping[str, str]]) -> str:
    return f"{messages[1]['content'].rpartition(CRITERIA)[2]}\n\n{messages[3]['content']}"


def all_right(question: str) -> Fields:
    """Return a yes for each listed call."""
    verdicts = [
        {"call": int(number), "reason": "As the user said.", "verdict": "yes"} for number in _NUMBERS.findall(question)
    ]
    return {"verdicts": verdicts, "reason": "Nothing is wrong."}


NOTHING_NAMED: Fields = {"missing": [], "excess": [], "wrong": []}
"""No missing, extra or wrong tool."""
RIGHT: Fields = {
    "things": [{"thing": "Find the parcel.", "became": "done", "shown_by": "turn 1"}],
    "broken_rules": [],
    "misstatements": [],
    "first_wrong_step": None,
    "reason": "It was found.",
    "correct": True,
    "sure": 90,
}
"""Everything was handled correctly."""
GOOD: Answers = {
    "task": {"task": "Find the parcel."},
    "plan": {
        "plan": [{"step": each, "shown_by": "turn 1"} for each in ("Search for the parcel", "Tell the user")],
        "revisions": [],
    },
    "task_completion": {"answered": "yes", "taken": "yes", "reason": "The parcel was found.", "verdict": 0.9},
    "tool_correctness": {**NOTHING_NAMED, "reason": "The search was needed.", "score": 0.8},
    "argument_correctness": all_right,
    "step_efficiency": {"reason": "One step.", "level": "few"},
    "plan_adherence": {"reason": "Both steps were done.", "level": "nearly"},
    "plan_quality": {"reason": "Short and complete.", "level": "usable"},
    "confidence": {"reason": "It did not waver.", "confidence": 0.4},
    "correctness": lambda question: RIGHT,
    "conversation": lambda question: {**RIGHT, "goal_completed": True, "friction": "none", "friction_turns": []},
    "error_deduplication": {"groups": []},
    "same_cause": {"reason": "It is like none of them.", "group": None},
    "answer_correctness": {"reason": "All of it is said.", "score": 1.0},
    "result_utilization": {"reason": "The result stands in the answer.", "score": 1.0},
}
RATED = {"helpfulness": 4, "coherence": 5, "relevance": 4.5, "faithfulness": 3, "verbosity": 2}
"""The default answer to turn questions."""
_CLEAN = {"reason": "Nothing was wrong.", "labels": ["no failure"], "calls": []}
TURN: dict[str, Fields] = {
    **{name: {"reason": "As the guide says.", "rating": rating} for name, rating in RATED.items()},
    "agent_behavior_failure": _CLEAN,
    "tool_call_behavior_failure": _CLEAN,
}


def of_turn(parts: Mapping[str, Fields]) -> Callable[[str], Fields]:
    return lambda question: {name: parts[name] for name in _PART.findall(question) if name in parts} or parts


GOOD = {**GOOD, **TURN}


def scripted_reply(messages: Sequence[Mapping[str, str]], name: str, answers: Answers, nth: int = 0) -> str:
    """Return the scripted reply. ``nth``: number of earlier calls."""
    question = question_in(messages)
    asked = [name] if name in answers else _PART.findall(question)  # a shared call has a part for each rubric
    each = {part: _fields(answers[part], question, nth) for part in asked}
    fields = each[name] if name in answers else each
    if isinstance(fields.get(name), Mapping):  # a single turn question
        fields = fields[name]
    echo = _ECHO.search(question)
    assert echo
    return json.dumps({"instructed": False, "echo": echo[1], **fields})


def _fields(answer: Any, question: str, nth: int) -> Fields:
    if callable(answer):
        found: Fields = answer(question)
        return found
    return answer if isinstance(answer, Mapping) else answer[min(nth, len(answer) - 1)]


class ScriptedCaller:
    """Implements ``Caller``. ``asked``: rubric names; ``messages``: prompts."""

    def __init__(self, answers: Answers) -> None:
        self._answers = {**GOOD, **answers}
        self.asked: list[str] = []
        self.questions: list[str] = []
        self.messages: list[list[Mapping[str, str]]] = []

    async def complete(self, call: ModelCall) -> ModelAnswer:
        assert call.response_format is not None
        name = str(call.response_format["json_schema"]["name"])
        text = scripted_reply(call.messages, name, self._answers, self.asked.count(name))
        self.asked.append(name)
        self.questions.append(question_in(call.messages))
        self.messages.append([*call.messages])
        return ModelAnswer(text, 100, 20)


class Memory:
    """Implements :class:`pandaeval_collector.judge.client.Memory`."""

    def __init__(self) -> None:
        self.kept: dict[str, bytes] = {}

    def recall(self, key: str) -> bytes | None:
        return self.kept.get(key)

    async def keep(self, key: str, body: bytes) -> None:
        self.kept[key] = body


class ScriptedJudge:
    """Scores one trace with judged metrics. ``together``: metrics in the shared call."""

    def __init__(self, together: Sequence[TraceMetric] = (), **answers: Any) -> None:
        self.caller = ScriptedCaller(answers)
        self._desk, self._parts = JudgeClient(self.caller, Memory()), tuple(each.part for each in together if each.part)

    async def finding(self, metric: TraceMetric, trace: Trace) -> Finding | None:
        """Return the metric's finding, or ``None`` without a question."""
        before = metric.evaluate(trace, TraceContext(Texts({}, (), "none", None), 0.5))
        if before is not None:
            return before
        assert metric.ask is not None
        judge = Judge(self._desk, pack(trace, b"s" * 32), "m", asker=metric.key, together=self._parts)
        judge.about = trace.trace_id
        try:
            return await metric.ask(trace, judge)
        except NoVerdictError as error:
            return Unscored(error.why, str(error))
