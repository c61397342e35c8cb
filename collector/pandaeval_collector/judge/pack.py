"""A trace as a judge sees it: deterministic, within a token budget, evidence before prose.

Trace text is inside fences. A fence's code is an HMAC of the section title under a secret of this store and day, so
content cannot close a fence.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

from pandaeval_collector.judge.context import EarlierTurns, before, joined
from pandaeval_collector.judge.run_facts import facts
from pandaeval_collector.judge.sanitize import neutral
from pandaeval_collector.judge.sections import PromptSection, agent_sections, run_sections
from pandaeval_collector.judge.shorten import elided, fitting, tokens
from pandaeval_collector.judge.steps import FAILED, KeptBlock, OwnWords, StepLimits, UsedBlock
from pandaeval_otel.model import Trace

_LEAST_VALUE = 100
"""Minimum characters shown of an argument or a result."""
_TEXT_SHARE = 0.7
"""Maximum characters of each text of a turn and each error, per token of the budget."""
_CONTEXT_SHARE = 0.4
"""The earlier conversation's share of the budget; its newest part is shown."""
_AGENT_SHARE = 0.25
"""The share of the budget that instructions and tools may take, if not everything fits."""
_LEAST_TOOL, _LISTED = 200, 60
"""If not all tools fit: minimum characters shown of a tool's description, and maximum tools listed."""
_HEAD = 80
"""Characters of an omitted block in the index."""
_LEFT_OUT = "(some were left out)"
_LONGER = 5
"""Characters per token of the budget, more than a pack can hold. Longer texts are cut before they are read."""
_WHOLE = 1 << 30
WHOLE = StepLimits(_WHOLE, _WHOLE, _WHOLE, _WHOLE, _WHOLE)
NONCE_DIGITS = 12
"""Digits of a fence code: enough against guessing, few because a prompt repeats the code dozens of times."""
_ANY_CODE = "?" * NONCE_DIGITS
_JUDGE = r"(?:judge|evaluator|grader|assessor|reviewer model|evaluation (?:model|system))"
_MARK = r"(?:score|verdict|rating|grade|marks?|confidence|evaluation)"
_BEST = r"(?:1(?:\.0+)?\b(?!\s*%)|5\s*/\s*5|10\s*/\s*10|100\s?%|perfect|full|maximum|highest|top|pass(?:ed|ing)?\b)"
_SUSPECT = re.compile(
    r"[\"']?instructed[\"']?\s*[:=]\s*(?:true|false)"
    r"|[\"']?echo[\"']?\s*[:=]\s*[\"']?[0-9a-f]{8}\b"
    rf"|[\"']{_MARK}[\"']\s*:\s*(?:1(?:\.0*)?|[\"'](?:pass|yes|right|correct))\b"
    r"|\becho[\"']? to\b|\bfield [\"']?echo\b|\bcode to (?:be )?repeat"
    r"|FACTS COUNTED BY CODE|\bfinal_(?:score|verdict)\b"
    r"|\banswer [\"']?yes[\"']? (?:for|to) (?:every|each|all)\b|\b(?:score|verdict|note)\b\W{0,4}(?:of |is |de )?1\.0\b"
    rf"|\b(?:give|set|assign|return|award|output|(?:answer|respond) with)\b[^.\n]{{0,60}}\b{_MARK}\b"
    rf"[^.\n]{{0,25}}{_BEST}"
    rf"|\b(?:give|assign|award)\b[^.\n]{{0,40}}\b{_BEST}[^.\n]{{0,15}}\b{_MARK}\b"
    rf"|\b(?:dear|attention|note to|message (?:to|for)|instructions? (?:to|for)) (?:the |all |any )?{_JUDGE}"
    rf"|\b{_JUDGE}s?\s*[:,]\s*(?:please|you|ignore|this|set|give|the)\b"
    rf"|\bas (?:the|a|an) {_JUDGE}\b|\byou are (?:now )?(?:the|a|an) {_JUDGE}\b"
    r"|\b(?:ignore|disregard|forget|override)\b[^.\n]{0,40}\b(?:rubric|criteria|grading|evaluation|judging)\b"
    r"|\b(?:mark|judge|grade|rate|count|treat)\b (?:this|the|it)\b[^.\n]{0,30}\bas (?:fully )?"
    r"(?:completed?|passed|correct|successful|perfect|right)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Pack:
    """A trace as text for a judge.

    ``nonce``: a code only this store can compute. ``digest``: 16 hex digits of the content. ``tokens``: estimate.
    ``truncated``: shortened parts. ``last_said``: the agent's last earlier message. ``shown``: share of events, 0..1.
    ``captured``: which of ``instructions``, ``tools``, ``history`` and ``pending`` apply; ``None`` if irrelevant.
    ``suspects``: ungrounded values. ``head``: length of the prefix shared by the agent's runs. ``codes``: of fences.
    """

    text: str
    nonce: str
    digest: str
    tokens: int
    truncated: tuple[str, ...]
    last_said: str = ""
    shown: float = 1.0
    suspected: bool = False
    captured: frozenset[str] | None = None
    suspects: tuple[Mapping[str, str], ...] = ()
    head: int = 0
    codes: tuple[str, ...] = ()
    agent_key: str = ""

    def without_codes(self, text: str) -> str:
        """Remove fence codes from a text such as a reply, to keep them secret."""
        return re.sub("|".join(self.codes), "[…]", text, flags=re.IGNORECASE) if self.codes else text


def fence(secret: bytes, title: str) -> str:
    return nonce(secret, "fence", title)


def nonce(secret: bytes, trace_id: str, evidence: str) -> str:
    """Return hex digits for this trace and evidence that only this store can compute."""
    return hmac.new(secret, f"{trace_id}:{evidence}".encode(), hashlib.sha256).hexdigest()[:NONCE_DIGITS]


def pack(trace: Trace, secret: bytes, budget: int = 12_000, earlier: Sequence[str] = ()) -> Pack:
    """Make a trace's pack within ``budget`` estimated tokens.

    ``earlier``: session content, if the spans lack it. Raises ``ValueError`` below 400.
    """
    if budget < 400:
        raise ValueError(f"a pack needs at least 400 tokens, not {budget}")
    own, most = nonce(secret, trace.trace_id, trace.digest), _LONGER * budget

    @cache
    def clean(text: str) -> str:
        return neutral(text if len(text) <= most else elided(text, most))

    counted, known = facts(trace), joined(before(trace), earlier)
    instruction_texts, history = tuple(map(clean, known.instructions)), tuple(map(clean, known.said))
    known = EarlierTurns(instruction_texts, history, clean(known.last_said), missing=known.missing)

    def of_agent(limits: StepLimits) -> list[PromptSection]:
        return agent_sections(trace, known, replace(limits, clean=clean))

    def of_run(limits: StepLimits) -> list[PromptSection]:
        return run_sections(trace, counted, known, replace(limits, clean=clean))

    head, run, share = whole = of_agent(WHOLE), of_run(WHOLE), 1.0
    if _size([*head, *run]) > budget:
        head, _ = _fitted(head, of_agent, int(budget * _AGENT_SHARE))
        run, share = _fitted(run, of_run, budget - _size(head) - 1)
    parts: dict[str, object] = {"instructions": known.instructions, "tools": trace.tools, "history": known.said}
    parts["pending"] = trace.ends_in_tool_call
    shown = [*head, *run]
    codes = {section.title: fence(secret, section.title) for section in shown}
    text = _render(shown, codes, own)
    content = json.dumps([[section.title, section.blocks] for section in shown], ensure_ascii=False)
    return Pack(
        text=text,
        nonce=own,
        digest=hashlib.blake2b(content.encode("utf-8", "replace"), digest_size=8).hexdigest(),
        tokens=tokens(text),
        last_said=known.last_said,
        shown=share,
        # Titles of the shortened parts, without their explanations.
        truncated=tuple(
            each.title.partition(" (")[0].partition(",")[0].lower()
            for each, complete in zip(shown, (*whole[0], *whole[1]), strict=True)
            if "\n\n".join(each.blocks) != "\n\n".join(complete.blocks)
        ),
        suspected=suspected(block for each in shown if not each.ours for block in each.blocks),
        captured=frozenset(name for name, held in parts.items() if held),
        head=len(_render(head, codes, own)),
        codes=(*codes.values(), own),
        agent_key=nonce(secret, "agent", "\n".join(trace.agents)),
    )


def _size(shown: Sequence[PromptSection]) -> int:
    return tokens(_render(shown, dict.fromkeys((section.title for section in shown), _ANY_CODE), _ANY_CODE))


def _fitted(
    whole: list[PromptSection], make: Callable[[StepLimits], list[PromptSection]], budget: int
) -> tuple[list[PromptSection], float]:
    if _size(whole) <= budget:
        return whole, 1.0
    found, least, most = make(_limits(_LEAST_VALUE, budget, make)), _LEAST_VALUE, _LONGER * budget
    if _size(found) > budget:
        return _squeezed(found, budget)
    while most - least > least // 20:
        middle = (least + most) // 2
        tried = make(_limits(middle, budget, make))
        if _size(tried) <= budget:
            found, least = tried, middle
        else:
            most = middle
    return found, 1.0


def _limits(value: int, budget: int, make: Callable[[StepLimits], list[PromptSection]]) -> StepLimits:
    text, tool = max(value, 200, int(budget * _TEXT_SHARE)), max(_LEAST_TOOL, value)
    limits = StepLimits(value, text, tool, _LISTED, 0)
    left = budget - _size(make(limits)) - 8
    return replace(limits, context=max(int(budget * _CONTEXT_SHARE), left))


def _squeezed(shown: Sequence[PromptSection], budget: int) -> tuple[list[PromptSection], float]:
    least_share = 1.0
    room = budget - _size([replace(each, blocks=("",)) for each in shown]) - len(shown)
    shares, found = sum(each.share for each in shown), dict[int, PromptSection]()
    needs = [tokens("\n\n".join(each.blocks)) for each in shown]
    for at in sorted(range(len(shown)), key=lambda at: needs[at] / shown[at].share):
        block, part = _within(shown[at].blocks, room * shown[at].share // shares)
        least_share = least_share if shown[at].outset else min(least_share, part)
        found[at] = replace(shown[at], blocks=(block,))
        room, shares = room - tokens(block), shares - shown[at].share
    return [found[at] for at in range(len(shown))], least_share


def _within(blocks: Sequence[str], most: int) -> tuple[str, float]:
    joined = "\n\n".join(blocks)
    if len(blocks) < 3 or tokens(joined) <= most:
        return fitting(joined, most), min(1.0, most / tokens(joined))
    last = fitting(blocks[-1], most // 2)
    first = fitting(blocks[0], max(0, most - tokens(last) - 16))
    room = most - tokens(first) - tokens(last) - 16
    kept, middle = {0, len(blocks) - 1}, range(1, len(blocks) - 1)
    heads = {at: elided(blocks[at].partition("\n")[0], _HEAD) for at in middle}
    index = min(room // 4, sum(map(tokens, heads.values())))
    room -= index

    def rank(at: int) -> tuple[bool, bool, bool, int]:
        block = blocks[at]
        return not isinstance(block, KeptBlock), FAILED not in block, not isinstance(block, UsedBlock), -at

    for at in sorted(middle, key=rank):
        size = tokens(blocks[at]) + 1
        if size > room:
            break
        room -= size
        kept.add(at)
    shown = [first]
    for at in middle:
        if at in kept:
            shown.append(blocks[at])
            continue
        index -= tokens(heads[at]) + 4
        line = f"(left out: {heads[at]})" if index > 0 else _LEFT_OUT
        if line != _LEFT_OUT or shown[-1] != _LEFT_OUT:
            shown.append(line)
    return fitting("\n\n".join([*shown, last]), most), len(kept) / len(blocks)


def _render(shown: Sequence[PromptSection], codes: Mapping[str, str], own: str) -> str:
    parts = []
    for number, section in enumerate(shown, 1):
        blocks = ("\n\n".join(section.blocks),) if section.together else section.blocks
        code = codes[section.title]
        fenced = (
            each
            if section.ours or isinstance(each, OwnWords)
            else f"<<{code}>>\n{_free(each, codes, own)}\n<</{code}>>"
            for each in blocks
        )
        parts.append("\n".join([f"## {number}. {section.title}", *fenced]))
    return "\n\n".join(parts)


def _free(text: str, codes: Mapping[str, str], own: str) -> str:
    for code in (*codes.values(), own):
        text = text.replace(code, "[…]")
    return text


def suspected(texts: Iterable[str]) -> bool:
    """Return whether a text addresses a judge or proposes a verdict. A hint only."""
    return any(_SUSPECT.search(text) for text in texts)
