"""The shared judge question about a conversation, the check of its reply, and the correctness finding.

It answers ``correctness``, ``goal_completion`` and ``user_friction`` in one call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field, ValidationError

from pandaeval_collector.base.score import Finding, Score, Unscored, Why
from pandaeval_collector.judge.client import Judge
from pandaeval_collector.judge.conversation import Conversation, conversation
from pandaeval_collector.judge.pack import Pack
from pandaeval_collector.judge.rubric import Answer, QuestionPart, Reason, Rubric, Verdict
from pandaeval_collector.judge.sanitize import neutral, one_line
from pandaeval_collector.judge.turns import stated
from pandaeval_collector.scoring.metric import JudgedSessionMetric
from pandaeval_collector.scoring.metrics.trace._facts import (
    ABOUT,
    NOTHING_CAPTURED,
    Step,
    has_any_content,
    missing_step_error,
    step_counts,
)

ENOUGH = 0.5
"""Minimum share of the conversation that the judge must see."""
NOT_CORRECT, CORRECT = 0.49, 0.51
"""Maximum score of a wrong conversation, and minimum score of a correct conversation."""


_Words = Annotated[str, Field(max_length=300)]
MOST_SUSPECTS = 20
TEXT = """
Did the agent handle the run correctly? It must do everything that it was asked for and may do, with the right details,
and nothing that it must not do. Judge the run as a whole, with all turns.

Evidence:
- The result of a call outweighs the agent's claims and the user's thanks. A user's report about their own device or
  side is evidence. If a result shows another clock than the start of the run, the clock of the result counts.
- Each message that the user could see counts as told, also a message between calls.
- If a later read contradicts the result of a change, the change was not made. A read that does not show the changed
  field is no evidence against the change.

Requests ("things"):
- Compare each detail of an action or answer with the request and the results: item, person, place, date, amount,
  payment method.
- A thing is the substance of a request. A condition, a consent or a detail of payment belongs to its request.
- A later request replaces an earlier one. A conditional request counts according to its condition. A request that the
  user dropped is not a thing. If the agent wrongly called it impossible, it is still open.
- Slips of form, side remarks, harmless extras and an unneeded transfer do not make a thing wrong. Form counts if the
  user or the instructions require an exact form. Doing more than asked is wrong if it costs or changes something.
- A transfer or a promise alone does not fulfil a request.
- A refusal, a transfer or "I cannot" is right if instructions, plain safety or the agent's tools leave no alternative.
  The agent must help as far as it can. A right refusal stays right without a reason. Any other refusal is needless.
- If the record ends with the agent's question, and the agent needs the answer or a consent, the thing is unknown. If
  the agent had the answer or could look it up, the thing is missing.

Arguments of calls:
- An explicit null or default for an optional argument equals leaving it out. If two tools fit a request, either is
  right.
- If no tool or instruction specifies a form, each usual form is right: 5 or 0.05 for a rate, a name or its code.

Rules and statements:
- A check or search that was left out counts only if it changed, cost or disclosed something.
- An offer or announcement that the instructions forbid is a misstatement if the agent did not carry it out. It breaks
  no rule. A forbidden attempt that failed and changed nothing breaks no rule either.
- A statement about this case without a basis is a misstatement if a tool of the agent could show the fact. If no tool
  can show it, general knowledge is a basis, and only an untrue statement is a misstatement.
- A misstatement is grave if the user would still act on it or pay by it. It is not grave if the agent corrected it in
  time, or if it only misreports a change that was made correctly.
- [with pending] The record ends with calls that have no result yet. Judge the calls as made. A thing is done if all
  calls that it needs at this point are there, with right arguments, and no others. It is wrong if an argument is
  wrong or a call serves no request. It is missing if a needed call could have been made by now. Missing results and
  answers make nothing unknown.
- [with history] Earlier requests that are still open count. Earlier actions are not judged again.
- [with instructions] An action that the instructions forbid is wrong even if the user is pleased. The rule is broken,
  and the thing is wrong.
- [without instructions] No instructions were captured. Assume no rules except plain safety and common sense.
- [with suspects] Suspects are values of the agent that code did not find in the agent's information. Most are harmless.
  They are listed under "suspects", with the text around them. A suspect is "confirmed" if the agent states it as a fact
  without a basis. If the user would act on it, list a grave misstatement too. A suspect is "refuted" if the record has
  it in another form, it follows from the record, everybody knows it, or the agent openly chose or proposed it.
  Otherwise it is "unknown".

Name steps as "call 7", or "turn 2" for the agent's answer in turn 2.

Example of a right run: the user wants order 12 cancelled, or else sent faster. Call 2 shows that it was sent, and the
instructions forbid cancelling sent orders. Call 3 makes it express. Things: "cancel order 12" rightly declined, shown
by call 2; "or else send it faster" done, shown by call 3. First wrong step null, correct true, sure 96.

Example of a wrong run: the user wants both tickets refunded to the card. Call 4 refunds one ticket, as a voucher. The
agent answers in turn 2 that both are refunded. Things: "refund both tickets to the card" wrong, shown by call 4.
Misstatements: both refunded, turn 2, grave. First wrong step call 4, correct false, sure 2.
"""


class Thing(Answer):
    thing: _Words
    """In the user's words"""
    became: Literal["done", "wrong", "missing", "rightly declined", "needlessly declined", "unknown"]
    """"wrong": done or told with a wrong detail"""
    shown_by: Step | None
    """The step that shows it; null if nothing was done"""


class BrokenRule(Answer):
    rule: _Words
    """The rule, and the forbidden action"""
    step: Step
    """The step that did it"""


class Misstatement(Answer):
    statement: _Words
    """The statement, and the fact"""
    step: Step
    """The step with the statement"""
    grave: bool
    """True if the user would still act on it"""


class Suspect(Answer):
    model_config = ConfigDict(extra="ignore")

    number: int
    """Its number in the list"""
    became: Literal["confirmed", "refuted", "unknown"]
    """By the rule on suspects"""


def _in_form(replied: Any) -> list[Any]:
    """Drop invalid answers about suspects, so that they do not invalidate the verdict."""
    kept = []
    for each in replied if isinstance(replied, list) else ():
        with suppress(ValidationError):
            kept.append(Suspect.model_validate(each))
    return kept


class Correctness(Answer):
    """The parts of the verdict, then the conclusion. ``correct``: ``None`` if unknown."""

    suspects: Annotated[list[Suspect], BeforeValidator(_in_form)] = Field(default_factory=list)
    """One for each suspect in the list."""
    things: list[Thing] = Field(max_length=8)
    """Each separate request, over all turns."""
    broken_rules: list[BrokenRule] = Field(max_length=8)
    """Actions of the agent that the instructions or plain safety forbid, if they changed, cost or disclosed something.
    Otherwise empty."""
    misstatements: list[Misstatement] = Field(max_length=8)
    """Statements to the user that contradict a result or have no basis. Otherwise empty."""
    first_wrong_step: Step | None
    """The earliest step that went wrong and was never corrected. If an answer announces what a later call does or tries
    wrongly, name the call. For an omission, name the step that gave the request up, such as a refusal or a transfer,
    otherwise the last turn that could have done it. Null if everything is correct."""
    reason: Reason
    """The deciding facts, in at most 60 words."""
    correct: bool | None
    """False exactly if any thing is wrong, missing or needlessly declined, a rule was broken, or a misstatement is
    grave. Null if the record is not sufficient to decide."""
    sure: Annotated[float, Field(ge=0.0, le=100.0)]
    """How sure you are that the agent handled the run correctly: 0 surely not, 50 undecided, 100 surely. Lower it for
    each doubt: a detail without evidence, a wrong figure on the way, a step or check of the instructions left out, a
    reading of a request or rule that other people may not share."""
    open_question: Annotated[str, Field(max_length=400)] | None = None
    """Null if "sure" is below 25 or above 75. Otherwise one question to the agent's owner, about a rule or an
    interpretation, whose answer settles the verdict. Word it for any run: no names, dates, numbers."""


class Whole(Correctness, Verdict):
    goal_completed: bool | None
    """Strictly: did the user get everything that they wanted, by the end? Partly done, only discussed or refused is
    false, even if the refusal is right. A forbidden success is true. A request that the user dropped does not count.
    Null if the record is not sufficient to decide."""
    friction: Literal["none", "some", "much"]
    """Did the agent make it hard: did the user repeat a request, correct the agent, complain about it, ask for a person
    or give up? Anger at goods, prices or rules is none. much: repeatedly, or until the end."""
    friction_turns: list[int] = Field(max_length=20)
    """Numbers of the turns whose user messages show it. Otherwise empty."""


def failure_of(verdict: Correctness) -> str | None:
    """Return the label of the most severe fault in a verdict's parts, else ``None``."""
    became = {each.became for each in verdict.things}
    faults = {
        "forbidden_action": bool(verdict.broken_rules),
        "false_statement": any(each.grave for each in verdict.misstatements),
        "wrong_thing": "wrong" in became,
        "missing_thing": "missing" in became,
        "needless_refusal": "needlessly declined" in became,
    }
    return next((label for label, there in faults.items() if there), None)


def _check(verdict: Correctness, given: Mapping[str, Any]) -> str | None:
    whole = verdict if isinstance(verdict, Whole) else None
    steps = [verdict.first_wrong_step, *(each.shown_by for each in verdict.things)]
    steps += [each.step for each in verdict.broken_rules] + [each.step for each in verdict.misstatements]
    steps += [f"turn {number}" for number in (whole.friction_turns if whole else ())]
    if missing := missing_step_error(steps, given):
        return missing
    if any(each.became in ("done", "wrong") and each.shown_by is None for each in verdict.things):
        return 'things: "shown_by" of what was done is the step that did it'
    fault = failure_of(verdict)
    if fault is not None and verdict.correct is not False:
        return f"correct: it has to be false, as the parts before it name a {fault.replace('_', ' ')}"
    if fault is None and verdict.correct is False:
        return "correct: it is false, and no part before it says what was wrong"
    if verdict.correct and verdict.first_wrong_step is not None:
        return "first_wrong_step: it has to be null where the agent did right"
    if whole and (whole.friction == "none") is bool(whole.friction_turns):
        return "friction_turns: they are empty exactly if friction is none"
    return None


def _suspects(pack: Pack) -> dict[str, Any]:
    keys = ("value", "argument", "text")
    listed = [
        {"number": number, **{key: each[key] for key in keys if key in each}}
        for number, each in enumerate(pack.suspects[:MOST_SUSPECTS], 1)
    ]
    return {"suspects": listed} if listed else {}


PART = QuestionPart(
    name="correctness",
    version="6",
    level="trace",
    about=ABOUT,
    text=TEXT,
    answer=Correctness,
    check=_check,
    tokens=950,
    given=lambda trace, facts: {**stated(conversation([trace], trace.digest)), **step_counts(trace)},
    of_pack=_suspects,
)
"""The question about a single run."""
WHOLE = Rubric(name="conversation", version="5", text=TEXT, verdict=Whole, max_tokens=1800, check=_check)
"""The question about a conversation, in the same call as ``goal_completion`` and ``user_friction``."""


def outcomes(verdict: Correctness, suspects: Sequence[Mapping[str, str]]) -> list[dict[str, str]]:
    """Return the outcome of each suspect; ``unknown`` if it is missing or contradictory."""
    replied: dict[int, set[str]] = {}
    for each in verdict.suspects:
        replied.setdefault(each.number, set()).add(each.became)
    return [
        {
            **{key: each[key] for key in ("value", "trace_id", "span_id")},
            "became": next(iter(found)) if len(found := replied.get(number, set())) == 1 else "unknown",
        }
        for number, each in enumerate(suspects[:MOST_SUSPECTS], 1)
    ]


def too_long(record: str, shown: float, metadata: Mapping[str, Any]) -> Unscored:
    reason = f"the {record} is too long: only {shown:.0%} of it fits the judge (judge.context_tokens)"
    return Unscored(Why.INSUFFICIENT_EVIDENCE, reason, metadata)


def finding_of(
    verdict: Correctness, conversation: Conversation, suspects: Sequence[Mapping[str, str]] = ()
) -> Score | Unscored:
    """Make the finding of a verdict, with the parts, the step to ``blame`` and the outcomes of ``suspects`` as
    metadata.
    """
    parts = verdict.model_dump(include={"things", "broken_rules", "misstatements", "first_wrong_step", "sure"})
    if verdict.open_question:
        parts["open_question"] = one_line(neutral(verdict.open_question))
    metadata, reason = {**parts, "turns": len(conversation.trace.turns)}, verdict.reason
    if suspects:
        metadata["suspects"] = became = outcomes(verdict, suspects)
        if listed := [f"'{each['value']}' {each['became']}" for each in became if each["became"] != "unknown"]:
            reason += f" Suspects: {', '.join(listed)}."
    if verdict.correct is None:
        return Unscored(Why.INSUFFICIENT_EVIDENCE, f"the judge could not decide: {reason}", metadata)
    sure = verdict.sure / 100.0
    found = Score(max(sure, CORRECT) if verdict.correct else min(sure, NOT_CORRECT), reason, metadata)
    found.label = failure_of(verdict)
    if verdict.first_wrong_step is not None:
        metadata["blame"] = step = _blamed(conversation, verdict.first_wrong_step)
        found.span_ids = (step["span_id"],)
    return found


def _blamed(conversation: Conversation, named: str) -> dict[str, Any]:
    trace, (kind, _, number) = conversation.trace, named.partition(" ")
    call = trace.tool_calls[int(number) - 1] if kind == "call" else None
    turn = trace.turns[int(number) - 1] if call is None and trace.turns else None
    span_id = call.span_id if call is not None else (turn.span_id if turn is not None else "") or trace.root_span_id
    owner = conversation.owners.get(span_id, trace.trace_id)
    return {"step": named, "trace_id": owner, "span_id": span_id, "tool": None if call is None else call.name}


def of_conversation(
    name: str, version: str, question: str, about: str | None, score: Callable[..., Score | Unscored]
) -> JudgedSessionMetric:
    """Make a metric whose ``score`` takes the shared reply, the conversation and its suspects."""

    async def ask(conversation: Conversation, judge: Judge) -> Finding | None:
        trace, missing = conversation.trace, conversation.missing
        hidden = {"traces_not_shown": missing} if missing else {}
        shown = judge.pack.shown * conversation.traces / (conversation.traces + missing)
        if not has_any_content(trace):
            return NOTHING_CAPTURED
        if shown < ENOUGH:
            return too_long("conversation", shown, hidden)
        given = {**stated(conversation), **step_counts(trace), **_suspects(judge.pack)}
        found = score(await judge.ask(WHOLE, given), conversation, judge.pack.suspects)
        return replace(found, metadata={**found.metadata, **hidden})

    return JudgedSessionMetric(
        name=name,
        version=version,
        threshold=0.5,
        question=question,
        needs="a session ID, and messages or calls; a judge",
        evaluate=lambda session, context: None if session.traces else NOTHING_CAPTURED,
        ask=ask,
        rubrics=(WHOLE,),
        unscored=(Why.NO_CONTENT, Why.INSUFFICIENT_EVIDENCE),
        about=(about or "").strip(),
    )
