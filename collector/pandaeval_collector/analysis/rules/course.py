"""How a run went, in counts: what a problem score is learned from. No label, no model, no text leaves the trace.

The words are those of service conversations in English; in other languages their counts stay 0, and a model that is
fitted on such runs gives them no weight.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice
from typing import Any

from pandaeval_collector.analysis.rules._failures import PARSED_UP_TO, as_object
from pandaeval_collector.analysis.rules._verbs import Nature, nature
from pandaeval_collector.analysis.rules.grounding.claims import arguments
from pandaeval_collector.analysis.rules.response_recovery import lost_at, spelled_calls, was_to_change, wrong_calls
from pandaeval_collector.analysis.stats.problem_features import MOST_TOOLS, Course
from pandaeval_collector.analysis.stats.topic import content_tokens
from pandaeval_otel.model import Trace

# Whether a user's message asks for what was said before: again, in a second version, with more to it, in spite of the
# answer, or because nothing came yet.
_BY_SIGN = {
    "again": "again",
    "e more": "once more|one more time",
    "repeat": r"repeat(?: (?:it|that|this))?",
    **{f"re{word}": f"re{word}" for word in ("send", "check", "confirm", "phrase", "state")},
    "re-": r"re-(?:send|check|confirm|phrase|state)",
    "double": "double[- ]check",
    "i said": "as i said|like i said",
    "still": "still|are you still there",
    "hello?": r"hello\?",
    "you there": "are you there",
    **{word: word for word in ("instead", "actually", "another", "changed my mind", "also", "as well", "in addition")},
    "anyway": "anyways?",
    **{words: words for words in ("any way", "at least", "are you sure")},
    "reconsider": r"reconsider\w*",
    "exception": "(?:an|any) exceptions?",
    "nochmal": "nochmals?",
    "wiederhol": r"wiederhol\w*",
    "encore": "encore(?: une fois)?",
    "repit": r"repit\w*",
    "ripet": r"ripet\w*",
    **{words: words for words in ("noch einmal", "immer noch", "stattdessen", "toujours", "otra vez", "de nuevo")},
    **{words: words for words in ("en cambio", "di nuovo", "ancora", "de novo", "ainda")},
}
"""ASCII patterns, each under a lower-case text that all its matches contain."""
_SIGNS = tuple(_BY_SIGN)
_AGAIN = re.compile(
    rf"\b(?:{'|'.join(_BY_SIGN.values())}|répét\w*|plutôt|todavía)\b"
    r"|再度|もう一度|再び|还是|再(?:说|来|发)?一[遍次]|다시|ещё раз|снова|повтор",
    re.IGNORECASE,
)
_LONGEST = 2_000
"""Characters of a message that are looked at: the end of it, where the question stands."""


def asks_again(trace: Trace) -> bool:
    """Whether the trace's last message of a user asks for a repeat or a second version, adds to what it asked, or
    presses for it."""
    asked = _question(trace)
    if asked.isascii() and not any(map(asked.lower().__contains__, _SIGNS)):
        return False  # as mostly, told in a tenth of the time that the search takes
    return _AGAIN.search(asked) is not None


def asked_words(trace: Trace) -> str:
    """Returns the content words of the trace's last message of a user, in the order of the alphabet."""
    return " ".join(sorted(content_tokens(_question(trace)))[:_MOST_WORDS])


def _question(trace: Trace) -> str:
    asked = trace.turns[-1].user if trace.turns else trace.input
    return str(asked or "")[-_LONGEST:]


_MOST_WORDS = 48
_MOST_VALUES, _SHORTEST = 64, 3
_APOLOGY = re.compile(r"\b(?:sorry|apologi[sz]e|apologies|unfortunately|regret)\b", re.IGNORECASE)
REFUSAL = re.compile(
    r"\b(?:unable to|cannot|can't|can not|not able to|not possible|not allowed|couldn't|could not|don't have)\b",
    re.IGNORECASE,
)
DONE = re.compile(r"\b(?:has been|have been|successfully|is now|confirmed|completed|all set|i've|i have)\b", re.I)
_CONFIRMING = re.compile(
    r"\b(?:confirm|would you like|do you want|shall i|please provide|proceed|yes/no|yes or no)\b", re.IGNORECASE
)
_CORRECTION = re.compile(
    r"\b(?:actually|instead|that's not|not what|wrong|incorrect|mistake|i said|i meant|no,|are you sure|again|still"
    r"|already|but i)(?:\b|$)",
    re.IGNORECASE,
)
_THANKS = re.compile(r"\b(?:thank|thanks|great|perfect|appreciate|that's all|awesome)\b", re.IGNORECASE)
TO_PEOPLE = re.compile(r"transfer|human|escalat|hand_?off|handover", re.IGNORECASE)


def course(trace: Trace) -> Course:
    """Counts how one trace went."""
    users = [turn.user for turn in trace.turns if turn.user]
    answers = [turn.assistant for turn in trace.turns if turn.assistant]
    calls, names = trace.tool_calls, [call.name for call in trace.tool_calls]
    wrong = wrong_calls(trace)
    changing = [was_to_change(trace, call) for call in calls]
    # How many calls gave values, and to how many of these results nothing later refers.
    later, results, unused = " ".join(answers).lower(), 0, 0
    for call, bad in zip(reversed(calls), reversed(wrong), strict=True):
        if values := [] if bad or not call.has_result else stated_values(call.result):
            results += 1
            unused += not any(value in later for value in values)
        later = f"{' '.join(stated_values(call.arguments))} {later}"
    return Course(
        spans=len(trace.spans),
        users=len(users),
        answers=len(answers),
        user_chars=sum(map(len, users)),
        answer_chars=sum(map(len, answers)),
        calls=len(calls),
        failed=sum(wrong),
        lost=len(lost_at(trace)) if any(wrong) else 0,
        to_change=sum(changing),
        changed=sum(change and not bad for change, bad in zip(changing, wrong, strict=True)),
        repeats=0
        if len(set(names)) == len(names)
        else len(names) - len(set(zip(names, spelled_calls(trace), strict=True))),
        handed=sum(nature(call.name) is Nature.HAND_OVER or bool(TO_PEOPLE.search(call.name)) for call in calls),
        results=results,
        unused=unused,
        apologies=_holding(_APOLOGY, answers),
        refusals=_holding(REFUSAL, answers),
        done=_holding(DONE, answers),
        confirming=_holding(_CONFIRMING, answers),
        corrections=_holding(_CORRECTION, users),
        thanks=_holding(_THANKS, users),
        asks=int(bool(answers) and "?" in answers[-1]),
        tools=tuple(sorted({*names}))[:MOST_TOOLS],
    )


def _holding(pattern: re.Pattern[str], texts: Sequence[str]) -> int:
    return len([text for text in texts if pattern.search(text)])


def stated_values(value: Any) -> list[str]:
    """Returns the values in an object, in lower case: the first 64 of at least three characters."""
    known = as_object(value) if isinstance(value, str) and len(value) <= PARSED_UP_TO else value
    texts = (str(leaf) for _, leaf in arguments(value if known is None else known))
    return [text[:PARSED_UP_TO].lower() for text in islice((t for t in texts if len(t) >= _SHORTEST), _MOST_VALUES)]
