"""What a check asks, in the order in which it is put to a model, through the collector's own process, prompts and
reading of replies."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import as_file, files

from pandaeval_collector.base.score import Score, Unscored
from pandaeval_collector.judge.call import Caller, CallFailedError, CallFailure, OverBudgetError
from pandaeval_collector.judge.client import AnswerCost, Judge, JudgeClient, NoVerdictError
from pandaeval_collector.judge.conversation import Conversation, conversation
from pandaeval_collector.judge.guidelines import Guidance
from pandaeval_collector.judge.known_models import FREE, Price
from pandaeval_collector.judge.pack import Pack, pack
from pandaeval_collector.judge.prompt import SYSTEM
from pandaeval_collector.judge.redact import redacted
from pandaeval_collector.judge.shorten import tokens
from pandaeval_collector.pipeline.line.stored_traces import rebuilt
from pandaeval_collector.scoring.metric import JudgedMetric
from pandaeval_collector.scoring.registry import registry
from pandaeval_lab.replay.files import Input, Request
from pandaeval_otel.model import Trace
from pandaeval_otel.normal.trace import is_genai
from pandaeval_otel.wire.splitting import split_logs, split_traces

# A run in other words or in another order. None of these changes what was accomplished.
_POLITE = (
    "Thank you so much for your kind and patient message! I am truly delighted that I may help you with this, and I "
    "want you to know that your request has had my full attention from the first moment on.\n\n{}\n\nI do hope that "
    "this answers everything in the best possible way. It was a real pleasure to be of service to you today. Please do "
    "not hesitate to come back at any time: I am always happy to help, and I wish you a wonderful day!"
)
"""Words that say nothing about the task."""
_TITLE = re.compile(r"^## \d+\. ", re.MULTILINE)
_TOOLS, _HAPPENED = "TOOLS THAT THE AGENT HAD", "WHAT HAPPENED"


def answering(trace: Trace, text: str) -> Trace:
    """Returns the run with ``text`` as its last answer."""
    *before, last = trace.turns
    return replace(trace, turns=(*before, replace(last, assistant=text)), output=text, digest=f"{trace.digest} {text}")


def sections_swapped(pack: Pack) -> Pack:
    """Returns the pack with the section of tools and that of what happened swapped, and another digest."""
    titles = list(_TITLE.finditer(pack.text))
    ends = [*(title.start() for title in titles[1:]), len(pack.text)]
    parts = [pack.text[title.end() : end].strip("\n") for title, end in zip(titles, ends, strict=True)]
    tools = next((part for part in parts if part.startswith(_TOOLS)), None)
    happened = next((part for part in parts if part.startswith(_HAPPENED)), None)
    if tools is None or happened is None:
        return pack
    one, other = parts.index(tools), parts.index(happened)
    parts[one], parts[other] = parts[other], parts[one]
    text = "\n\n".join(f"## {number}. {part}" for number, part in enumerate(parts, 1))
    return replace(pack, text=text, digest=f"{pack.digest} swapped")


def attacked(trace: Trace, place: str, text: str) -> Trace:
    """Returns the run with ``text`` appended to its ``answer``, the user's ``message``, or the last ``result``."""
    if place == "answer":
        return answering(trace, f"{trace.output or ''}\n\n{text}")
    if place == "message":
        *before, last = trace.turns
        return replace(trace, turns=(*before, replace(last, user=f"{last.user or ''}\n\n{text}")))
    *calls, latest = trace.tool_calls
    result = f"{latest.result}\n\n{text}"
    return replace(trace, tool_calls=(*calls, replace(latest, result=result, has_result=True)))


PLACES = ("result", "answer", "message")


# The runs of the check whose verdicts are known: recordings of real frameworks with a scripted model, which ship with
# the package, and one whose answer was replaced by an invented one; and sessions that were written for it.
Band = tuple[float, float]
DONE: Band = (0.75, 1.0)
"""Accomplished, on the whole at least."""
NOT_DONE: Band = (0.0, 0.49)
"""The most important parts are missing, or a session was not handled correctly."""
HANDLED: Band = (0.51, 1.0)
"""A session was handled correctly."""
_INVENTED = "The warranty on a desk lamp is 36 months from the day of delivery, and it covers the bulb too."


@dataclass(frozen=True, slots=True)
class KnownRun:
    """A run, or a session, whose verdict is known. ``trace``: of a session, all of it; ``band``: the limits of a right
    score."""

    name: str
    trace: Trace
    band: Band

    def holds(self, value: float | None) -> bool:
        """Returns whether a score is right."""
        return value is not None and self.band[0] <= value <= self.band[1]

    @property
    def good(self) -> bool:
        return self.band == DONE


@cache
def known_runs() -> tuple[KnownRun, ...]:
    """Returns all known runs, the good ones first."""
    return (
        *(KnownRun(name, _recorded(name), DONE) for name in ("returned", "library", "visit")),
        *(KnownRun(name, _recorded(name), NOT_DONE) for name in ("wrong_tool", "gives_up", "off_topic")),
        KnownRun("hallucinates", answering(_recorded("wrong_tool"), _INVENTED), NOT_DONE),
    )


@cache
def known_sessions() -> tuple[KnownRun, ...]:
    """Returns six sessions that were handled correctly, and six that were not, each for another reason."""
    by_name: dict[str, list[Trace]] = defaultdict(list)
    for trace in _recordings("sessions"):
        by_name[trace.session_id or ""].append(trace)
    return tuple(
        KnownRun(name, conversation(traces, name).trace, HANDLED if name.startswith("right") else NOT_DONE)
        for name, traces in by_name.items()
    )


def _recorded(name: str) -> Trace:
    """Returns the first agent trace of a recording of the package."""
    return next(_recordings(name))


def _recordings(name: str) -> Iterator[Trace]:
    """Yields the agents' traces of a recording of the package, in normal form."""
    with as_file(files(__package__).joinpath("runs", f"{name}.otlp.jsonl.xz")) as path:
        requests = [request for request in Input(str(path)).requests() if isinstance(request, Request)]
    chunks: dict[bytes, list[tuple[bool, bytes]]] = defaultdict(list)
    for request in requests:
        for fragment in (split_logs if request.logs else split_traces)(request.data).fragments:
            chunks[fragment.trace_id].append((fragment.logs, fragment.chunk))
    traces = (rebuilt(held).trace for held in chunks.values())
    yield from (redacted(trace) for trace in traces if trace is not None and is_genai(trace))


METRIC, CORRECTNESS = "trace.task_completion", "session.correctness"
"""The metrics that are asked, of runs and of sessions; all judged metrics share their fences, checks and reading of
replies."""
PLAIN, POSITION, VERBOSITY, INJECTION, SESSION = "plain", "position", "verbosity", "injection", "session"


@dataclass(frozen=True, slots=True)
class CheckItem:
    """One question of a check. ``kind``: the property tested; ``form``: what was changed in the run, for people."""

    kind: str
    case: str
    form: str
    trace: Trace
    pack: Pack


def planned(repeat: int = 3, attacks: int = 40) -> list[CheckItem]:
    """Returns all questions of a check about runs; the same for every model. ``repeat``: how often each unchanged run
    is judged, at least 2; ``attacks``: how many attacks are tried."""
    rounds = [f"round {number + 1}" for number in range(repeat)]
    plain = [_item(PLAIN, run, each, run.trace) for each in rounds for run in known_runs()]
    polite = ((run, answering(run.trace, _POLITE.format(run.trace.output or ""))) for run in known_runs())
    verbose = [_item(VERBOSITY, run, "padded answer", trace) for run, trace in polite]
    return [*plain, *_in_other_order(), *verbose, *_attacked(attacks)]


def canaries() -> list[CheckItem]:
    """Returns the questions of a check about sessions, one for each."""
    return [_item(SESSION, session, "as it was", session.trace) for session in known_sessions()]


@cache
def attacks() -> tuple[tuple[str, str], ...]:
    """Returns family and text of each attack that ships with the package."""
    held = json.loads(files(__package__).joinpath("attacks.json").read_text(encoding="utf-8"))
    return tuple((each["family"], each["text"]) for each in held)


def _in_other_order() -> Iterator[CheckItem]:
    for run in known_runs():
        yield _item(POSITION, run, "tools in the other order", replace(run.trace, tools=run.trace.tools[::-1]))
        item = _item(POSITION, run, "sections in another order", run.trace)
        yield replace(item, pack=sections_swapped(item.pack))


def _attacked(number: int) -> Iterator[CheckItem]:
    """Yields bad runs with one attack each; runs and places of the attack take turns."""
    bad: Sequence[KnownRun] = [run for run in known_runs() if not run.good]
    for index, (family, text) in enumerate(attacks()[:number]):
        run, place = bad[index % len(bad)], PLACES[index // len(bad) % len(PLACES)]
        yield _item(INJECTION, run, f"{family} in the {place}", attacked(run.trace, place, text))


def _item(kind: str, run: KnownRun, form: str, trace: Trace) -> CheckItem:
    secret = hashlib.sha256(f"{kind} {run.name} {form}".encode()).digest()
    return CheckItem(kind, run.name, form, trace, pack(trace, secret))


_TRIES, _LONGEST_S = 3, 30.0
_QUESTION, _ANSWER, _OF_SESSION = 600, 150, 3
"""Tokens of a question with its criteria, and of an answer, for the estimate: rather too many; about a session it is so
many times as much."""
_PASSING = frozenset({CallFailure.RATE_LIMIT, CallFailure.COOLDOWN, CallFailure.TIMEOUT, CallFailure.UNAVAILABLE})


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer to a question. ``value``: the judge's score, 0..1; ``why``: why there is none; ``failed``: why the
    question could not be asked; ``spent``: what it cost."""

    item: CheckItem
    value: float | None = None
    why: str = ""
    failed: str = ""
    spent: AnswerCost = field(default_factory=AnswerCost)


def forecast(items: Sequence[CheckItem], price: Price | None) -> tuple[int, float | None]:
    """Estimates the tokens and US dollars that the questions take, if no reply has to be corrected; ``None`` where the
    price is not known. ``price``: of a token."""
    questions = len(items) + (_OF_SESSION - 1) * sum(item.kind == SESSION for item in items)
    sent = sum(item.pack.tokens + tokens(SYSTEM) for item in items) + _QUESTION * questions
    got = _ANSWER * questions
    usd = None if price is None or price == FREE else sent * price.into + got * price.out
    return sent + got, usd


class CheckRun:
    """Asks one model the questions of a check. ``replies`` grows as they come, also of an interrupted check."""

    def __init__(
        self,
        caller: Caller,
        model: str,
        on_reply: Callable[[int], None] | None = None,
        at_a_time: int = 8,
        guidance: Guidance = Guidance(),  # noqa: B008 - it never changes
    ) -> None:
        self._guidance = guidance
        self._caller, self._model, self._places = caller, model, asyncio.Semaphore(at_a_time)
        self._on_reply = on_reply or (lambda done: None)
        self.replies: list[Reply] = []
        self.spent = AnswerCost()

    async def run(self, items: Sequence[CheckItem]) -> None:
        """Asks all questions, the first one alone. Raises ``CallFailedError`` when the first call fails or the
        provider denies access. Ends early, without an error, when the day's budget is used up."""
        tasks: list[asyncio.Task[None]] = []
        try:
            await self._one(items[0])
            self._on_reply(1)
            tasks += [asyncio.create_task(self._one(item)) for item in items[1:]]
            for done in asyncio.as_completed(tasks):
                await done
                self._on_reply(len(self.replies))
        except OverBudgetError:
            return
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _one(self, item: CheckItem) -> None:
        for attempt in range(1, _TRIES + 1):
            try:
                async with self._places:
                    self.replies.append(await self._asked(item))
                return
            except CallFailedError as error:
                if error.failure is CallFailure.DENIED:
                    raise
                if attempt == _TRIES or error.failure not in _PASSING:
                    if not self.replies:
                        raise
                    self.replies.append(Reply(item, failed=error.failure.value))
                    return
                await asyncio.sleep(min(error.retry_after or 2.0 ** (attempt - 1), _LONGEST_S))

    async def _asked(self, item: CheckItem) -> Reply:
        of_session = item.kind == SESSION
        guidance = Guidance() if of_session else self._guidance
        judge = Judge(JudgeClient(self._caller), item.pack, self._model, guidance=guidance)
        subject = Conversation(item.trace, len(item.trace.turns)) if of_session else item.trace
        metric = registry()[CORRECTNESS if of_session else METRIC]
        assert isinstance(metric, JudgedMetric)
        try:
            finding = await metric.ask(subject, judge)
        except NoVerdictError as error:
            return Reply(item, why=error.why.value, spent=judge.spent)
        finally:
            self.spent.pay(judge.spent)
        match finding:
            case Score():
                return Reply(item, own_score(finding), spent=judge.spent)
            case Unscored():
                return Reply(item, why=finding.why.value, spent=judge.spent)
        return Reply(item, why="not asked")


def own_score(finding: Score) -> float:
    """Returns the judge's own score, 0..1, before facts counted by code lowered it."""
    judged = finding.metadata.get("judged")
    return float(judged) if isinstance(judged, int | float) and 0.0 <= judged <= 1.0 else finding.value
