"""A judge by script that reads what it is sent, and knows nothing else of a run.

A few plain heuristics on the words of the prompt: were tools called that the task speaks of, do the values of arguments
stand in what was shown before, do answer and results agree, did the agent give up? It answers "unknown" where the
record does not hold what it would need, and judges neither plans nor efficiency nor confidence. It is no good judge:
it shows that what a judge needs is in the prompt.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pandaeval_collector.judge.call import ModelAnswer, ModelCall

Json = dict[str, Any]

_ECHO = re.compile(r'Set "echo" to ([0-9a-f]{8})')
_SECTION = re.compile(r"^## \d+\. (.+)$", re.MULTILINE)
_FENCE = re.compile(r"^<</?[0-9a-f]{12}>>$", re.MULTILINE)
_GIVEN = re.compile(r"^(\w+): (.+)$", re.MULTILINE)
_STEP = re.compile(r"^call (\d+): (\S+)", re.MULTILINE)
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_NAMED = re.compile(r"\b(?=\w*-?\d)[A-Za-z]{1,4}-?\d{2,}\b")
_LISTED = re.compile(r"(?<![\w.])\d{1,2}[.)]\s")
_GOES_ON = "the record ends with a tool call"
_WORD = re.compile(r"[^\W\d_]+")
_PARTS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_GIVES_UP = re.compile(
    r"\b(?:unable to|cannot|can't|could not|couldn't|not able to)\b.{0,30}\b(?:help|do|assist|that|this)\b"
    r"|\b(?:contact|call|reach out to)\b.{0,30}\b(?:support|service|us|clinic|shop|library|desk|office)\b",
    re.IGNORECASE,
)
_STOP = frozenset(
    """
    a all an and any are as at be by can could did do does for from get give had has have how i if in is it its like
    many may me much my no not of on one or other our out please same should so some take tell than that the their them
    then there they this to today up was we were what when where which while who will with would you your use used find
    make long will also day that next week
    """.split()  # noqa: SIM905 - a list of words to be read
)
_SMALL = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
NOT_CAPTURED = "(not captured)"


def stems(text: str) -> set[str]:
    """The words that mean something, shortened so that their forms are one."""
    words = (word.casefold() for word in _WORD.findall(text))
    return {_stem(word) for word in words if len(word) > 2 and word not in _STOP}


def _stem(word: str) -> str:
    for ending in ("ations", "ation", "ings", "ing", "ies", "ers", "est", "ed", "es", "er", "s", "y", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word


def values(text: str, spelled_out: bool = True) -> set[str]:
    """Numbers without leading and trailing zeros, and names with digits, as they are compared."""
    text = _LISTED.sub(" ", text)
    numbers = {f"{float(each):g}" for each in _NUMBER.findall(text)}
    words = _SMALL if spelled_out else ()
    spelled = {str(at) for at, word in enumerate(words) if re.search(rf"\b{word}\b", text, re.IGNORECASE)}
    return numbers | spelled | {each.casefold() for each in _NAMED.findall(text)}


@dataclass(frozen=True)
class Step:
    number: int
    name: str
    arguments: str
    result: str


@dataclass(frozen=True)
class Record:
    """What a prompt says, taken apart. ``given``: what stands with the question, by name."""

    sections: Mapping[str, str]
    given: Mapping[str, Any]
    question: str

    def of(self, title: str) -> str:
        return "\n".join(text for name, text in self.sections.items() if name.startswith(title))

    @property
    def task(self) -> str:
        return str(self.given.get("task") or self.given.get("user_input") or self.of("WHAT THE USER ASKED"))

    @property
    def answer(self) -> str:
        return self.of("WHAT THE AGENT ANSWERED")

    @property
    def context(self) -> str:
        return self.of("THE AGENT'S INSTRUCTIONS") + self.of("THE CONVERSATION BEFORE") + self.of("WHAT THE USER ASKED")

    @property
    def steps(self) -> list[Step]:
        happened = self.of("WHAT HAPPENED")
        starts = [*_STEP.finditer(happened)]
        ends = [*[each.start() for each in starts[1:]], len(happened)]
        return [_step(each, happened[each.end() : end]) for each, end in zip(starts, ends, strict=False)]

    @property
    def tools(self) -> dict[str, str]:
        lines = (line.partition("(") for line in self.of("TOOLS THAT THE AGENT HAD").splitlines())
        return {name.strip(): rest.partition("): ")[2] for name, opened, rest in lines if opened and name.strip()}


def _step(head: re.Match[str], body: str) -> Step:
    told = re.search(r"^arguments: (.*)$", body, re.MULTILINE)
    result = body.partition("\nresult: ")[2].strip()
    failed = re.search(r"^FAILED: (.*)$", body, re.MULTILINE)
    return Step(int(head[1]), head[2], told[1] if told else NOT_CAPTURED, result or (failed[1] if failed else ""))


def read(messages: Sequence[Mapping[str, str]]) -> Record:
    """A prompt, taken apart."""
    record, question = messages[1]["content"], messages[2]["content"]
    starts = [*_SECTION.finditer(record)]
    ends = [each.start() for each in starts[1:]] + [len(record)]
    sections = {
        each[1]: _FENCE.sub("", record[each.end() : end]).strip() for each, end in zip(starts, ends, strict=True)
    }
    data = question.partition("data as well:\n")[2].partition("All that stands between fences")[0]
    return Record(sections, {name: _value(text) for name, text in _GIVEN.findall(data)}, question)


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


# -- what it thinks ----------------------------------------------------------------------------------------------------


def task_completion(record: Record) -> Json:
    """Answer against question, and answer against what tools gave back."""
    steps, asked = record.steps, stems(record.task)
    covered = len(asked & stems(record.answer)) / max(1, len(asked))
    gives_up = _GIVES_UP.search(record.answer) is not None
    same = values(record.task) & values(record.answer)
    answered = "no" if gives_up or (covered < 0.2 and not same) else "yes"
    if record.answer.rstrip().endswith("?") and not gives_up:
        answered = "rightly not"
    taken = _taken(record, steps, asked)
    if answered == "unknown" or (answered == "yes" and taken == "unknown"):
        return {"answered": answered, "taken": taken, "reason": "The results were not captured.", "verdict": None}
    value = 0.6 + 0.4 * covered if answered != "no" else 0.3 * covered
    return {
        "answered": answered,
        "taken": taken,
        "reason": f"{covered:.0%} of the task's words are in the answer; taken from results: {taken}.",
        "verdict": min(value, 0.4) if taken == "no" and answered != "rightly not" else value,
    }


def _taken(record: Record, steps: Sequence[Step], asked: set[str]) -> str:
    """Whether values of the answer stand in what was shown, and whether what it speaks of was looked up."""
    if any(step.result == NOT_CAPTURED for step in steps):
        return "unknown"
    looked_up = " ".join(f"{_spaced(step.name)} {step.arguments} {step.result}" for step in steps)
    made_up = values(record.answer, spelled_out=False) - values(record.context + looked_up)
    claimed = {each for each in asked & stems(record.answer) if len(each) > 4}
    unsupported = claimed - stems(looked_up + record.of("THE CONVERSATION BEFORE")) if steps else set()
    subjects = {each for name in record.tools for each in stems(_spaced(name))}
    return "no" if made_up or unsupported & subjects else "yes"


def tool_correctness(record: Record) -> Json:
    """A tool whose name has a word of the task that no called tool's name has is missing."""
    asked, called = stems(record.task), [step.name for step in record.steps]
    named = {name: stems(_spaced(name)) for name in record.tools}
    had = {each for name in called for each in stems(_spaced(name)) | stems(record.tools.get(name, ""))}
    missing = sorted(name for name, words in named.items() if name not in called and (words & asked) - had)
    if _GOES_ON in record.of("FACTS COUNTED"):
        missing = []  # may still come
    strange = sorted(name for name in called if not _serves(name, record, asked))
    if not called and not record.tools:
        return {"reason": "Neither calls nor tools were captured.", "choice": "unknown", "score": None}
    wrong = len(missing) + len(strange)
    choice = "mistaken" if strange else "too few" if missing else "right"
    said = f"Missing: {', '.join(missing) or 'none'}; not for this task: {', '.join(strange) or 'none'}."
    return {"reason": said, "choice": choice, "score": max(0.0, 0.5 - 0.1 * wrong) if wrong else 1.0}


def _serves(name: str, record: Record, asked: set[str]) -> bool:
    """Whether a tool's name, or what its definition says of it, has a word of the task."""
    return bool((stems(_spaced(name)) | stems(record.tools.get(name, ""))) & asked)


def argument_correctness(record: Record) -> Json:
    """Every value of an argument has to stand in what was shown before its call."""
    steps = {step.number: step for step in record.steps}
    verdicts = []
    for each in record.given.get("tool_calls", ()):
        number = int(each["call"])
        results = [step.result for step in steps.values() if step.number < number]
        strange = sorted(_strange(str(each["parameters"]), " ".join([record.context, record.task, *results])))
        said = f"Shown nowhere before: {', '.join(strange)[:200]}." if strange else "All values were shown before."
        wrong = "unknown" if NOT_CAPTURED in results else "no"
        verdicts.append({"call": number, "reason": said, "verdict": wrong if strange else "yes"})
    return {"verdicts": verdicts, "reason": "As told for each call."}


def _strange(arguments: str, shown: str) -> Iterator[str]:
    known, words = values(shown), stems(shown)
    for leaf in _leaves(_value(arguments)):
        if values(leaf) - known or (not values(leaf) and stems(leaf) and not stems(leaf) & words):
            yield leaf


def _leaves(value: Any) -> Iterator[str]:
    if isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _leaves(each)
    elif value is not None and not isinstance(value, bool):
        yield str(value)


def _spaced(name: str) -> str:
    return " ".join(_PARTS.findall(name))


_NO_OPINION = {"reason": "This judge does not judge that."}
_JUDGES = {
    "task_completion": task_completion,
    "tool_correctness": tool_correctness,
    "argument_correctness": argument_correctness,
    "task": lambda record: {"task": record.of("WHAT THE USER ASKED")[:800]},
    "plan": lambda record: {"plan": [], "revisions": []},
    "confidence": lambda record: {**_NO_OPINION, "confidence": None},
}


class CompetentCaller:
    """Implements :class:`pandaeval_collector.judge.call.ModelCaller`."""

    async def complete(self, call: ModelCall) -> ModelAnswer:
        assert call.response_format is not None
        name = str(call.response_format["json_schema"]["name"])
        record = read(call.messages)
        fields = _JUDGES.get(name, lambda record: {**_NO_OPINION, "score": None})(record)
        echo = _ECHO.search(record.question)
        assert echo
        return ModelAnswer(json.dumps({"instructed": False, "echo": echo[1], **fields}), 100, 20)
