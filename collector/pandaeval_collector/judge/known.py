"""What is known of a model: its family by its name; by litellm's own list its prices, how long prompts and answers may
be, whether it reasons."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

MOST_RECORD, LEAST_RECORD, SMALLER_RECORD = 12_000, 400, 6_000
"""Tokens of a record: what is shown of it where the window is large or not known, what is always shown, and what is
tried where the first was too long for the model."""
_QUESTION = 1_500
"""Tokens of what stands around a record: system message, question, the shape of the answer."""
_ELSEWHERE = ("OPENAI_BASE_URL", "OPENAI_API_BASE")
"""Variables that send what is meant for OpenAI to another server."""
_SURE = 0.75
"""Part of a window that is filled: our count of tokens is an estimate, and texts full of numbers take more."""


class Price(NamedTuple):
    """Prices in US dollars per token: of a prompt, an answer, and a prompt from the provider's cache."""

    into: float = 0.0
    out: float = 0.0
    cached: float = 0.0


FREE = Price()


@dataclass(frozen=True, slots=True)
class KnownModel:
    """What is known of a model. ``price``: ``None`` if not listed; ``window``: tokens of prompt and answer together,
    ``most_out``: of an answer, ``None`` if not known; ``reasons``: the model thinks, or may, before it answers;
    ``marks``: its provider caches the beginning of a prompt only where the prompt marks it; ``keyed``: its provider
    routes prompts with the same key to machines that have their beginning cached."""

    price: Price | None = None
    window: int | None = None
    most_out: int | None = None
    reasons: bool = False
    marks: bool = False
    keyed: bool = False


def known(litellm: Any, model: str) -> KnownModel:
    """Looks a model up in litellm's list, without the network."""
    try:
        info = litellm.get_model_info(model)
    except Exception:  # noqa: BLE001 - it raises a bare Exception for a model that it does not know
        return KnownModel(marks="claude" in model.lower())
    into, out = float(info.get("input_cost_per_token") or 0), float(info.get("output_cost_per_token") or 0)
    cached = info.get("cache_read_input_token_cost")
    return KnownModel(
        Price(into, out, into if cached is None else float(cached)),
        _count(info.get("max_input_tokens")),
        _count(info.get("max_output_tokens")),
        bool(info.get("supports_reasoning")),
        "claude" in model.lower() and bool(info.get("supports_prompt_caching")),
        info.get("litellm_provider") == "openai" and not any(map(os.environ.get, _ELSEWHERE)),
    )


def record_budget(window: int | None, reply: int) -> int:
    """Returns how many tokens of a record a model is shown. ``reply``: tokens that its answer may take."""
    if window is None:
        return MOST_RECORD
    return max(LEAST_RECORD, min(MOST_RECORD, int(_SURE * (window - reply - _QUESTION))))


def _count(value: Any) -> int | None:
    return int(value) if isinstance(value, int | float) and value > 0 else None


# Which family a model is of, read from its name: models rate work of their own kind too high, and share its faults.
#
# Names come as providers, gateways and instrumentations spell them: ``gpt-4o-2024-08-06``, ``azure/eu/gpt-4o``,
# ``bedrock/us.anthropic.claude-sonnet-4-20250514-v1:0``, ``together_ai/meta-llama/Llama-3.1-8B-Instruct-Turbo``.
_FAMILIES = {
    word: words.split()[0]
    for words in """
    gpt chatgpt gptoss codex davinci babbage curie ada; claude; gemini gemma codegemma medgemma shieldgemma learnlm
    palm bison unicorn; llama codellama metallama tinyllama; qwen codeqwen qwq qvq tongyi; mistral mixtral ministral
    codestral magistral pixtral devstral mathstral voxtral; deepseek; grok; command c4ai aya; nova titan; phi; glm
    chatglm codegeex; kimi moonshot moonlight; granite; jamba jurassic; ernie; doubao skylark; hunyuan; minimax
    abab; nemotron; yi; falcon; olmo tulu molmo; solar; sonar; palmyra; reka; dbrx; arctic; smollm; internlm intern;
    lfm
    """.split(";")  # noqa: SIM905 - a list of words to be read
    for word in words.split()
}
"""The family of each word, without the number that may be behind it (``qwen3``, ``phi4``); the first word names it."""
_WORD = re.compile(r"[a-z]+\d*[a-z]*\d*")
_REASONER = re.compile(r"(?:^|\.|openai-)o[1-9](?=$|[-:@])")
"""OpenAI's o1, o3, o4-mini …: too short a word to be looked for anywhere but at the beginning."""
_VERSION = re.compile(r"v?\d.*")
_DATE = re.compile(r"[-@](?:\d{4}-?\d{2}-?\d{2}|\d{6}|\d{4})(?=$|[-:])")
_TAIL = re.compile(r"(?:[-@:](?:latest|default|v\d+(?::\d+)?|\d+)){1,8}$")
_LONGEST = 200


@lru_cache(maxsize=512)
def family(model: str) -> str | None:
    """Returns a model's family by its best known name, ``None`` for a name that does not tell it."""
    name = model[:_LONGEST].lower()
    base = _base(name)
    if _REASONER.search(base):
        return "gpt"
    return _named(base) or _named(name.partition("/")[2])


def kin(one: str, other: str) -> str | None:
    """Returns what two models have in common: their family, or the bare name if that tells no family; else ``None``."""
    of_one = family(one)
    if of_one is not None:
        return of_one if of_one == family(other) else None
    bare = plain(one)
    return bare if bare and bare == plain(other) else None


def plain(model: str) -> str:
    """Returns the last part of a model's name, in lower case, without date and version."""
    return _TAIL.sub("", _DATE.sub("", _base(model[:_LONGEST].lower())))


def _base(name: str) -> str:
    """Returns the part behind the last slash; of ``ft:gpt-4o-mini:team::id`` the model that was tuned."""
    base = name.rpartition("/")[2]
    return base.split(":")[1] if base.startswith("ft:") else base


def _named(name: str) -> str | None:
    """Returns the first family that a word of the name belongs to."""
    for found in _WORD.finditer(name):
        word = found.group()
        known = _FAMILIES.get(word) or _FAMILIES.get(_VERSION.sub("", word))
        if known is not None:
            return known
    return None
