"""Finds tool calls that failed without recovery, and the answer's account of these failures."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from enum import Enum, auto
from functools import wraps
from itertools import islice
from typing import TypeVar

from pandaeval_collector.analysis.rules._canonical import canonical_arguments, has_outcome
from pandaeval_collector.analysis.rules._failures import FailureSign, as_object, failure_sign, reports_not_found
from pandaeval_collector.analysis.rules._verbs import Nature, computes, nature, only_looks, runs_code
from pandaeval_collector.base.lazy_pattern import lazily
from pandaeval_otel.model import Kind, Span, ToolCall, Trace

_NAMED, _MOST_NAMED = 120, 16
"""Maximum characters of a call's key, and maximum keys that a trace keeps for its session."""
_MOST_CALLS = 1_000
_NOT_DONE = (FailureSign.FAILED, FailureSign.DECLINED)
_STEPS = (Kind.LLM, Kind.TOOL, Kind.RETRIEVAL)

# Caches the findings of a trace, because several metrics read them in turn.
_Found = TypeVar("_Found")
_CODE_KEYS = ("command", "cmd", "commands", "code", "script", "source", "sql", "query", "input", "args", "keystrokes")
_WRITING = lazily(
    r"(?:^|[;&|\n({\"'`]|\b(?:sudo|xargs|then|do|exec)\b)[^\S\n]*+(?:\w++=\S++[^\S\n]++)*+(?:"
    r"(?:rm|rmdir|mv|cp|mkdir|touch|tee|dd|chmod|chown|ln|kill|pkill|patch|truncate|install|crontab|unzip|useradd)\s"
    r"|git\s+(?:-\S+\s+)*(?:add|commit|push|pull|merge|rebase|reset|restore|checkout|switch|apply|rm|mv|stash|clone|"
    r"init|cherry-pick|revert)\b"
    r"|(?:apt|apt-get|apk|yum|dnf|brew|pip3?|uv|poetry|npm|pnpm|yarn|cargo|gem|go)\s+(?:pip\s+)?(?:-\S+\s+)*"
    r"(?:install|add|remove|uninstall|upgrade|publish)\b"
    r"|(?:docker|kubectl|helm|systemctl|service|terraform|aws|gcloud|az)\b[^\n;&|]*\b(?:run|rm|stop|start|restart|"
    r"build|push|apply|delete|create|scale|patch|install|upgrade|enable|disable|destroy|put\S*|update\S*)\b)"
    r"|\b(?:sed|perl)\s+(?:-(?:(?!\b(?:sed|perl)\s)\S)+\s+)*-\w*i|(?<![-=0-9&<>])>>?\s*(?!/dev/null|&|=)[\w./~$\"'-]"
    r"|\bcurl\b(?:(?!\bcurl\b)[^\n])*(?:\s-X\s*(?:POST|PUT|PATCH|DELETE)|\s(?:-d|--data\S*|-F|-T)\s)"
    r"|\b(?:insert\s+into|update\s+[\w.\"`]+\s+set|delete\s+from|drop\s+\w+|alter\s+\w+|truncate\s+table|"
    r"create\s+(?:or\s+replace\s+)?(?:table|view|index|database))\b"
    r"|\bopen\((?:(?!\bopen\()[^)\n])*,\s*(?:mode=)?['\"][wax]|\.(?:write_text|write_bytes|to_csv|to_excel|to_sql|savefig|unlink|commit)\("
    r"|\b(?:os\.(?:remove|rename|makedirs|mkdir|rmdir)|shutil\.\w+|requests\.(?:post|put|patch|delete))\("
)
"""Commands, SQL and code that change something, as far as the text shows."""
# The answer's statement about failed work: it failed, it was done, or a question how to continue.
_QUESTION = lazily(r"[?？][\s\"')*_]*$", 0)
_SENTENCE = lazily(r"(?<=[.!?。！？])\s+|\n+|(?<=[。！？])", 0)
_FAILED = lazily(
    r"\b(?:unable|unfortunately|sorry|apolog\w+|cannot|can not|can't|cant|could not|couldn't|was not|wasn't|were not|"
    r"weren't|has not|hasn't|have not|haven't|did not|didn't|does not|doesn't|do not|don't|will not|won't|not able|"
    r"not (?:been |yet )?(?:possible|available|done|complete\w*|success\w*|found|allowed|permitted|authori\w+)|"
    r"fail\w*|errors?|problems?|issues?|trouble|timed? ?out|timeouts?|unavailable|unsuccessful\w*|rejected|declined|"
    r"denied|refused|invalid|blocked|restrict\w+|disallowed|prevent(?:ed|ing|s)|"
    r"went wrong|not enough|insufficient\w*|(?:not|in)[ -]?(?:sufficient|eligible)|isn't|aren't|"
    r"is not|are not|no longer|instead|"
    r"unchanged|remains? (?:on|in|with|as|at|the same|active|open|booked|pending)|"
    r"no (?:booking|order|change|refund|payment|reservation|action)s? (?:was|were|has|have)|"
    r"leider|nicht|fehler\w*|fehlgeschlagen|gescheitert|"
    r"malheureusement|désolée?|impossible|échou\w+|échec|erreur|n'ai pas|"
    r"lamentablemente|lo siento|no (?:pude|se pudo|fue posible|puedo)|falló|"
    r"infelizmente|desculpe|não (?:foi possível|consegui|pude)|falhou|"
    r"purtroppo|mi dispiace|non (?:è stato possibile|sono riuscit\w+|posso)|helaas|niet|mislukt|tyvärr|inte|"
    r"к сожалению|не удалось|ошибк\w+)\b"
    r"|无法|無法|失败|失敗|抱歉|错误|錯誤|未能|できません|できなかった|エラー|申し訳|죄송|실패|오류|할 수 없"
)
_ALL_IS_WELL = lazily(
    r"\b(?:no|without|any|zero)(?: any| further)? (?:errors?|problems?|issues?|trouble)\b"
    r"|\b(?:don't|do not) (?:hesitate|worry|forget)\b|\bif you (?:have|run into|encounter) any \w+"
    r"|\b(?:keine?|ohne) (?:fehler|probleme)\b|\bsans (?:erreur|problème)\b|\bsin (?:errores|problemas)\b"
)
"""Phrases that sound like a failure and report none."""
_ASKS_ON = lazily(
    r"\b(?:would you (?:still |rather )?(?:like|prefer|want)|do you (?:still )?(?:want|prefer|wish)|shall i|should i|"
    r"please (?:confirm|provide|tell|let me know|reply|choose|select)|"
    r"let me know (?:if|how|which|what|whether)|how would you like)\b"
)
_GO_ON = lazily(
    r"\b(?:proceed|go ahead|go on|continue|move forward|try again|still (?:like|want|wish|prefer)|"
    r"instead|alternative\w*|another (?:way|method|card|date|option)|different)\b"
)
"""Words of a question about work that is not done yet."""
_HANDS_OVER = lazily(
    r"\b(?:transfer(?:red|ring)?|connect(?:ed|ing)?|escalat\w+|forward(?:ed|ing)?|hand(?:ed|ing)?)\b.{0,40}"
    r"\b(?:human|agent|colleague|specialist|representative|support|team|supervisor)\b"
)
_BY_THE_WAY = lazily(
    r"\b(?:anything|something) else\b|\b(?:any )?(?:other|further|more|additional|else) "
    r"(?:help|assistance|questions?|requests?|information|details)\b|\bneed (?:further|more|any|help)\b"
    r"|\bhave (?:any|other)\b|\bfeel free\b"
)
"""Polite ends of answers, which are not questions about a failure."""
_DONE = (
    r"(?:set|done|booked|updated|changed|cancell?ed|sent|opened|closed|added|removed|applied|placed|ordered|moved|"
    r"completed?|processed|created|deleted|modified|exchanged|returned|refunded|confirmed|reserved|scheduled|submitted|"
    r"pushed|posted|published|uploaded|deployed|merged|saved)"
)
_I_DID = rf"(?:I|we)(?:'ve| have)?(?: now| just| already)? {_DONE}"
_CLAIMS = lazily(rf"\b(?:successful(?:ly)?|(?:has|have|is|are)(?: now| all)?(?: been)? {_DONE}|{_I_DID})\b")
OWN_WORK = lazily(rf"\b{_I_DID}\b")
_NOT_YET = lazily(
    r"^\W*(?:if|once|when|after|before|as soon as|until|unless)\b|"
    r"\b(?:once|if|after|until|when) (?:it|this|that|the|your|you)\b|"
    r"\b(?:would|could|should|shall|please|can|to be|will be|ready to|about to|going to|whether|already|earlier|"
    r"previous(?:ly)?)\b|\?\s*$"
)
"""A conditional, an offer or a past event claims no success."""
_SORRY = lazily(
    r"\b(?:sorry|apolog\w+|unfortunately|leider|malheureusement|désolée?|lamentablemente|lo siento|infelizmente|"
    r"desculpe|purtroppo|mi dispiace|helaas|tyvärr|к сожалению)\b|抱歉|申し訳|죄송"
)
"""Words of regret. Next to a claim of success, they may concern the user's story."""
_ASIDE = lazily(
    r"\b(?:don't|do not|doesn't|does not|won't|will not|instead|no longer|issues?|problems?|trouble|nicht|niet|inte)\b"
    r"(?! (?:been|be able|have|has|available|possible|eligible|enough|allowed|permitted|work))"
)
"""Asides in answers that claim success ("it will not be mailed", "the issue is solved")."""
_POLICY = lazily(
    r"\b(?:can't|cant|cannot|can not|isn't|aren't|is not|are not|invalid|errors?|restrict\w+|prevent\w+|"
    r"unavailable|not (?:possible|available|allowed|permitted))\b"
)
"""Rules and warnings ("it cannot be changed later"). Next to a claim of success, they do not admit a failure."""
_LONGEST = 20_000
"""Characters of an answer that are read."""


def cached_per_trace(find: Callable[[Trace], _Found]) -> Callable[[Trace], _Found]:
    """Cache ``find`` for the latest trace. Thread-safe; do not change results."""
    latest: tuple[Trace, _Found] | None = None

    @wraps(find)
    def found(trace: Trace) -> _Found:
        nonlocal latest
        known = latest
        if known is not None and known[0] is trace:
            return known[1]
        made = find(trace)
        latest = (trace, made)
        return made

    return found


# Data about the tool calls of a trace in order, shared by several rules. Do not change it.
@cached_per_trace
def signs_of(trace: Trace) -> list[FailureSign]:
    return [*map(failure_sign, trace.tool_calls)]


@cached_per_trace
def wrong_calls(trace: Trace) -> list[bool]:
    return [sign in _NOT_DONE for sign in signs_of(trace)]


@cached_per_trace
def spelled_calls(trace: Trace) -> list[str | None]:
    """Return the canonical arguments of each call, default values included."""
    return [canonical_arguments(call.arguments) for call in trace.tool_calls]


@cached_per_trace
def read_only_hints(trace: Trace) -> dict[str, bool | None]:
    return {tool.name: tool.read_only for tool in reversed(trace.tools)}


def lost_at(trace: Trace, sign: FailureSign = FailureSign.FAILED) -> list[int]:
    """Return indexes of calls that failed for good, or have another ``sign`` for good.

    Considers state-changing calls of the last ``_MOST_CALLS``. Without a state-changing call, returns all calls if all
    failed and not all report a missing object. A later success of any changing call, or another success of an equal
    call, recovers a failure.
    """
    calls, signs, wrong = trace.tool_calls, signs_of(trace), wrong_calls(trace)
    if sign not in signs:
        return []
    changing = [at for at in range(len(calls))[-_MOST_CALLS:] if was_to_change(trace, calls[at])]
    if not changing:
        every = all(each is sign for each in signs) and not all(map(reports_not_found, calls))
        return [*range(len(calls))] * every
    starts = {span.span_id: span.start_ns for span in trace.spans if span.kind is Kind.LLM}
    spelled = spelled_calls(trace)
    succeeded = {(call.name, spelled[at]) for at, call in enumerate(calls) if not wrong[at] and spelled[at] is not None}
    lost: list[int] = []
    # Later successes: their tools, the latest start, and the starts of calls that only a model's input shows.
    tools: set[str] = set()
    latest, in_inputs = -1, set[int]()
    for at in reversed(changing):
        call = calls[at]
        if not wrong[at]:
            tools.add(call.name)
            latest = max(latest, call.start_ns)
            if starts.get(call.span_id) == call.start_ns:
                in_inputs.add(call.start_ns)
        elif signs[at] is sign and not (
            call.name in tools
            or latest > call.start_ns
            or call.start_ns in in_inputs
            or (call.has_arguments and (call.name, spelled[at]) in succeeded)
        ):
            lost.append(at)
    return lost[::-1]


def changed_by(trace: Trace) -> tuple[str, ...]:
    """Return the changing tools whose last call worked."""
    last = {call.name: at for at, call in enumerate(trace.tool_calls)}
    wrong = wrong_calls(trace)
    return tuple(name for name, at in last.items() if not wrong[at] and was_to_change(trace, trace.tool_calls[at]))


def open_call_key(call: ToolCall) -> str:
    """Return the name by which later traces of the session answer an open call."""
    what = call.id or hashlib.blake2b((canonical_arguments(call.arguments) or "").encode(), digest_size=8).hexdigest()
    return f"{call.name}({what})"[:_NAMED]


def answered_by(trace: Trace) -> tuple[str, ...]:
    """Return the :func:`open_call_key` of the first calls that are answered here and that another trace requested."""
    models = [span.output for span in trace.spans if span.kind is Kind.LLM and span.output]
    asked = {request.id for output in models for message in output for request in message.tool_requests}
    calls = (call for call in trace.tool_calls if has_outcome(call) and call.id not in asked)
    return tuple(dict.fromkeys(open_call_key(call) for call in islice(calls, _MOST_NAMED)))


def steps_of(trace: Trace) -> list[Span]:
    """Return the inner spans that can break a run, in order."""
    inner = {span.parent_id for span in trace.spans}
    steps = [
        span for span in trace.spans if span.kind in _STEPS or (span.kind is Kind.AGENT and span.span_id not in inner)
    ]
    return [span for span in steps if span.span_id != trace.root_span_id]


def answering_span(trace: Trace) -> str:
    """Return the span ID of the last model call or agent that gave the answer.

    If no captured output has the answer, return the last model call without captured output, or ``""``.
    """
    steps = [span for span in steps_of(trace) if span.kind in (Kind.LLM, Kind.AGENT)]
    answer = (trace.output or "").strip()
    heard = [(span.span_id, [message.text.strip() for message in span.output or ()]) for span in steps]
    for same in (str.__eq__, str.__contains__) if answer else ():
        if by := [id_ for id_, texts in heard if any(same(answer, text) for text in texts if text)]:
            return by[-1]
    models = [span for span in steps if span.kind is Kind.LLM and span.output is None]
    return max(models, key=lambda span: span.end_ns).span_id if models and answer else ""


def was_to_change(trace: Trace, call: ToolCall) -> bool:
    """Return whether a call was meant to change state, by definition, name, or code."""
    hint = read_only_hints(trace).get(call.name)
    if hint is None and (only_looks(call.name) or computes(call.name)):
        return False
    if hint is None and runs_code(call.name) and (given := statement_of(call.arguments)) is not None:
        return _WRITING.search(given[:_LONGEST]) is not None
    return nature(call.name, hint) is Nature.CHANGING


def statement_of(arguments: object) -> str | None:
    held = as_object(arguments) or arguments
    if isinstance(held, dict):
        held = next((held[key] for key in _CODE_KEYS if held.get(key)), None)
    return " ".join(map(str, held)) if isinstance(held, list) else held if isinstance(held, str) else None


class FailureAccount(Enum):
    """An answer's account of failed work.

    ``ADMITTED``: a failure or omission. ``ASKED``: a question or hand-over, also without an admission.
    ``CLAIMED``: success only.
    """

    NOTHING = auto()
    ADMITTED = auto()
    ASKED = auto()
    CLAIMED = auto()


def failure_account(answer: str, done: bool = True) -> FailureAccount:
    """Read an answer's account of failed work, in common languages. ``done``: some work succeeded."""
    text = answer[:_LONGEST].replace("\u2019", "'")
    claims = bool(claims_in(answer))
    cleaned_text = _ALL_IS_WELL.sub(" ", text)
    if claims:
        cleaned_text = _ASIDE.sub(" ", _SORRY.sub(" ", cleaned_text))
        if not done:
            cleaned_text = _POLICY.sub(" ", cleaned_text)
    asking = [*filter(_asks, sentences(answer))]
    if _FAILED.search(cleaned_text) is not None:
        return FailureAccount.ASKED if asking else FailureAccount.ADMITTED
    if claims and not any(_GO_ON.search(each) for each in asking):
        return FailureAccount.CLAIMED
    return FailureAccount.ASKED if asking else FailureAccount.NOTHING


def _asks(sentence: str) -> bool:
    """Return whether a sentence asks how to continue, or hands over."""
    if _BY_THE_WAY.search(sentence) is not None and " or " not in sentence:
        return False
    return any(pattern.search(sentence) is not None for pattern in (_QUESTION, _ASKS_ON, _HANDS_OVER))


def claims_in(answer: str) -> list[str]:
    """Return an answer's sentences that claim completed work, without offers, conditions or questions."""
    return [each for each in sentences(answer) if _CLAIMS.search(each) is not None and _NOT_YET.search(each) is None]


def sentences(answer: str) -> list[str]:
    text = answer[:_LONGEST].replace("\u2019", "'")
    return [each for each in _SENTENCE.split(text) if each.strip()]


def admits_failure(answer: str) -> bool:
    """Return whether the answer admits a failure, asks how to continue or hands over."""
    return failure_account(answer) in (FailureAccount.ADMITTED, FailureAccount.ASKED)
