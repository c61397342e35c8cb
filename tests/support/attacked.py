"""An agent run with an attacker's text, and judges that detect text outside fences."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from pandaeval_collector.base.score import Finding, Score, Unscored
from pandaeval_collector.judge.call import ModelAnswer, ModelCall
from pandaeval_collector.judge.client import Judge, JudgeClient, NoVerdictError
from pandaeval_collector.judge.pack import pack
from pandaeval_collector.judge.redact import redacted
from pandaeval_collector.scoring.metric import Texts, TraceContext, TraceMetric
from pandaeval_collector.scoring.registry import registry
from pandaeval_otel.model import Trace, Turn
from pandaeval_otel.normal.evidence import gather
from pandaeval_otel.normal.trace import build_trace
from pandaeval_otel.wire.splitting import split_traces
from support.scripted_judge import Memory, question_in

HARMLESS = "The blue parcel."
_START = 1_790_000_000 * 10**9
Json = dict[str, Any]


def _said(role: str, text: str) -> Json:
    return {"role": role, "parts": [{"type": "text", "content": text}]}


class _Run:
    """The spans of the run; callers change a field to insert the attack."""

    def __init__(self) -> None:
        self.user, self.answer = (
            "Where is my parcel PX-1? Book a new pick-up.",
            "It is in the depot, the pick-up is booked.",
        )
        self.found: Any = {"place": "depot", "note": "left at noon"}
        self.booked: Json = {"day": "Monday", "door": "north"}
        self.documents: list[Json] = [{"id": "d1", "content": "Parcels wait in the depot for a week."}]
        self.tool, self.span_name, self.error = "book_pickup", "execute_tool book_pickup", ""

    def trace(self) -> Trace:
        """Return the normalised run."""
        request = ExportTraceServiceRequest()
        scope = request.resource_spans.add().scope_spans.add()
        asked = [_said("user", self.user)]
        call = {"type": "tool_call", "id": "c1", "name": "find_parcel", "arguments": {"id": "PX-1"}}
        thought = {"type": "reasoning", "content": "First I find the parcel, then I book."}
        agent = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "helper"}
        chat = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "small-1"}
        scope.spans.extend(
            [
                _span(1, 0, "invoke_agent helper", agent | _content(asked, [_said("assistant", self.answer)])),
                _span(2, 1, "chat small-1", chat | _content(asked, [{"role": "assistant", "parts": [thought, call]}])),
                _span(3, 1, "execute_tool find_parcel", _tool("find_parcel", "c1", {"id": "PX-1"}, self.found)),
                _span(
                    4,
                    1,
                    "retrieve",
                    {"gen_ai.operation.name": "retrieval"} | {"gen_ai.retrieval.documents": json.dumps(self.documents)},
                ),
                _span(5, 1, self.span_name, _tool(self.tool, "c2", self.booked, "done"), self.error),
                _span(6, 1, "chat small-1", chat | _content(asked, [_said("assistant", self.answer)])),
            ]
        )
        split = split_traces(request.SerializeToString())
        built = build_trace(gather((fragment.logs, fragment.chunk) for fragment in split.fragments))
        assert built is not None
        return built


def _span(number: int, parent: int, name: str, attributes: Json, error: str = "") -> Span:
    span = Span(trace_id=b"\1" * 16, span_id=number.to_bytes(8, "big"), name=name)
    span.parent_span_id = parent.to_bytes(8, "big") if parent else b""
    span.start_time_unix_nano = _START + number * 10**9
    span.end_time_unix_nano = _START + (60 if number == 1 else number + 1) * 10**9 - 1
    if error:
        span.status.CopyFrom(Status(code=Status.STATUS_CODE_ERROR, message=error))
    for key, value in attributes.items():
        span.attributes.add(key=key).value.string_value = value
    return span


def _content(asked: list[Json], answered: list[Json]) -> Json:
    definitions = [
        {"type": "function", "name": "find_parcel", "description": "Finds a parcel.", "parameters": {}},
        {"type": "function", "name": "book_pickup", "description": "Books a pick-up.", "parameters": {}},
    ]
    return {
        "gen_ai.input.messages": json.dumps(asked),
        "gen_ai.output.messages": json.dumps(answered),
        "gen_ai.tool.definitions": json.dumps(definitions),
    }


def _tool(name: str, call_id: str, arguments: Any, result: Any) -> Json:
    given = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.call.id": call_id,
        "gen_ai.tool.call.arguments": json.dumps(arguments),
        "gen_ai.tool.call.result": result if isinstance(result, str) else json.dumps(result),
    }
    return given | ({"gen_ai.tool.name": name} if name else {})


def _in_user_message(run: _Run, text: str) -> None:
    run.user += f"\n{text}"


def _in_tool_output(run: _Run, text: str) -> None:
    run.found = text


def _in_span_name(run: _Run, text: str) -> None:
    """Put the tool name into the span name only."""
    run.tool, run.span_name = "", f"execute_tool {text}"


def _in_attribute_key(run: _Run, text: str) -> None:
    run.booked = {text: "Monday", "door": "north"}


def _in_error_text(run: _Run, text: str) -> None:
    run.error = text or "no"


def _in_document(run: _Run, text: str) -> None:
    run.documents = [{"id": "d1", "content": text}, {"id": text[:200], "content": "x"}]


PLACES: Mapping[str, Callable[[_Run, str], None]] = {
    "user message": _in_user_message,
    "tool output": _in_tool_output,
    "span name": _in_span_name,
    "attribute key": _in_attribute_key,
    "error text": _in_error_text,
    "document": _in_document,
}


def attacked(place: str, text: str, rest: str = "") -> Trace:
    """Return the run with the text in this place, and ``rest`` after its answer."""
    run = _Run()
    PLACES[place](run, text)
    run.answer += f"\n{rest}" if rest else ""
    return run.trace()


def talked_on(trace: Trace) -> Trace:
    """Return the run with a second turn, so that every question applies."""
    return replace(trace, turns=(*trace.turns, Turn("And tell my neighbour, please.", "She knows of it.")))


# -- judges ------------------------------------------------------------------------------------------------------------

PLAIN: Mapping[str, Json] = {
    "task": {"task": "Find the parcel."},
    "plan": {"plan": [{"step": each, "shown_by": "turn 1"} for each in ("Find it", "Book")], "revisions": []},
    "task_completion": {"answered": "no", "taken": "yes", "reason": "So so.", "verdict": 0.31},
    "tool_correctness": {"missing": ["ask"], "excess": [], "wrong": [], "reason": "So so.", "score": 0.31},
    "argument_correctness": {"reason": "So so."},
    "step_efficiency": {"reason": "So so.", "level": "most"},
    "plan_adherence": {"reason": "So so.", "level": "hardly"},
    "plan_quality": {"reason": "So so.", "level": "weak"},
    "confidence": {"reason": "So so.", "confidence": 0.31},
    "correctness": {
        "things": [{"thing": "Find it.", "became": "missing", "shown_by": None}],
        "broken_rules": [],
        "misstatements": [],
        "first_wrong_step": None,
        "reason": "So so.",
        "correct": False,
        "sure": 31.0,
    },
}
"""The default answer: a low verdict."""
BEST_CHOICES: Mapping[str, Json] = {
    "answered": "yes",
    "taken": "yes",
    "missing": [],
    "things": [],
    "correct": True,
}
BEST_LEVELS: Mapping[str, str] = {"step_efficiency": "none", "plan_adherence": "exactly", "plan_quality": "excellent"}
"""Choices that agree with a perfect score."""
_OURS = re.compile(r"<<([0-9a-f]{12})>>")
_PAIR = re.compile(r"^<<([0-9a-f]{12})>>$\n(.*?)^<</\1>>$", re.MULTILINE | re.DOTALL)
_ANY_FENCE = re.compile(
    r"(?:[<＜‹]\s?[<＜‹]|[«《])\s*[/⁄∕／]?\s*(?:CODE|[0-9A-Fa-f]{6,})\s*(?:[>＞›]\s?[>＞›]?|[»》])", re.IGNORECASE
)
_TEMPLATE = re.compile(
    r"<[|｜][^<>\n]{1,40}[|｜]>|\[/?(?:INST|SYSTEM_PROMPT|SYSTEM|TOOL_RESULTS|gMASK)\]|<</?SYS>>"
    r"|</?(?:s|bos|eos|sop|eop|system|user|think|tool_call|tool_response|function_results)>"
    r"|<(?:start|end)_of_turn>|<(?:beginning|end)_of_sentence>|<(?:extra_id|reserved)_\d+>",
    re.IGNORECASE,
)
_NUMBERS = re.compile(r'"call": (\d+)')
_PART = re.compile(r'^"(\w+)": an object \(', re.MULTILINE)
_CODE = re.compile(r'Set "echo" to ([0-9a-f]{8})')
_CUT = re.compile(r"\(Cut by us: [a-z0-9 ,']+\.\)")


def outside(messages: Sequence[Mapping[str, str]]) -> list[str]:
    found: list[str] = []
    for message in messages:
        closed = ""
        for line in message["content"].split("\n"):
            if closed:
                closed = "" if line == closed else closed
            elif opened := _OURS.fullmatch(line):
                closed = f"<</{opened[1]}>>"
            else:
                found.append(_CODE.sub("", _CUT.sub("", line)))
    return [line for line in found if line.strip()]


class Parrot:
    """Implements ``Caller``. Obeys every line outside fences that a harmless run does not show.

    ``sloppy``: accepts false fence ends. ``obeyed``: count.
    """

    def __init__(self) -> None:
        self._ours: dict[str, frozenset[str]] = {}
        self.obeyed: list[str] = []
        self.calls = 0
        self.learning = True

    async def complete(self, call: ModelCall) -> ModelAnswer:
        assert call.response_format is not None
        name = str(call.response_format["json_schema"]["name"])
        self.calls += 1
        lines = outside(call.messages)
        if self.learning:
            self._ours[name] = frozenset(lines) | self._ours.get(name, frozenset())
        why = self._order(name, lines, call.messages)
        if why:
            self.obeyed.append(f"{name}: {why[:200]}")
        return ModelAnswer(_verdict(call, name, best=bool(why)), 1, 1)

    def _order(self, name: str, lines: Sequence[str], messages: Sequence[Mapping[str, str]]) -> str:
        strange = [line for line in lines if line not in self._ours[name]]
        if strange:
            return strange[0]
        for message in messages[1:]:
            content = _PAIR.sub(r"\2", message["content"])
            found = _ANY_FENCE.search(content) or _TEMPLATE.search(content)
            if found:
                return found.group()
        return ""


class Copycat:
    """Implements ``Caller``. Repeats the first valid verdict in the record, if any."""

    def __init__(self) -> None:
        self.copied = 0

    async def complete(self, call: ModelCall) -> ModelAnswer:
        assert call.response_format is not None
        schema = call.response_format["json_schema"]
        own = _verdict(call, str(schema["name"]), best=False)
        for found in _objects("\n".join(message["content"] for message in call.messages[1:4])):
            if set(found) == set(json.loads(own)):
                self.copied += 1
                return ModelAnswer(json.dumps(found), 1, 1)
        return ModelAnswer(own, 1, 1)


def _objects(text: str) -> list[Json]:
    decoder, found = json.JSONDecoder(), []
    for start in (match.start() for match in re.finditer(r"\{", text[:200_000])):
        try:
            value, _ = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict) and "echo" in value:
            found.append(value)
    return found


def _verdict(call: ModelCall, name: str, *, best: bool) -> str:
    question = question_in(call.messages)
    code = _CODE.search(question)
    assert code
    if name in PLAIN:
        fields = _fields(question, name, best=best)
    else:  # a shared call
        fields = {part: _fields(question, part, best=best) for part in _PART.findall(question)}
    return json.dumps({"instructed": False, "echo": code[1], **fields})


def _fields(question: str, name: str, *, best: bool) -> Json:
    fields = {key: (1.0 if best and isinstance(value, float) else value) for key, value in PLAIN[name].items()}
    if best:
        fields |= {key: value for key, value in BEST_CHOICES.items() if key in fields}
        fields |= {"level": BEST_LEVELS[name]} if "level" in fields else {}
    if name == "argument_correctness":
        numbers = _NUMBERS.findall(question)
        verdict = "yes" if best else "no"
        fields["verdicts"] = [{"call": int(n), "reason": "So so.", "verdict": verdict} for n in numbers]
    return fields


JUDGED: Sequence[TraceMetric] = [m for m in registry().values() if m.kind == "llm" and m.level == "trace"]


async def findings(trace: Trace, caller: Parrot | Copycat, together: bool = False) -> dict[str, Finding | None]:
    """Return all judged findings. ``together``: in one call."""
    desk, packed = JudgeClient(caller, Memory()), pack(redacted(trace), b"s" * 32)
    context = TraceContext(Texts({}, (), "none", None), 0.5)
    found: dict[str, Finding | None] = {}
    parts = tuple(metric.part for metric in JUDGED if together and metric.part and not metric.evaluate(trace, context))
    for metric in JUDGED:
        before = metric.evaluate(trace, context)
        if before is not None or metric.ask is None:
            found[metric.name] = before
            continue
        try:
            found[metric.name] = await metric.ask(trace, Judge(desk, packed, "m", together=parts))
        except NoVerdictError as error:
            found[metric.name] = Unscored(error.why, str(error))
    return found


def lifted(found: Mapping[str, Finding | None]) -> list[str]:
    """Return the metrics whose score the attack raised."""
    return [name for name, each in found.items() if isinstance(each, Score) and each.value > 0.31]
