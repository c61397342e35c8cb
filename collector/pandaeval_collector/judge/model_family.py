"""Reads the family of a model from its name: models rate work of their own kind too high, and share its faults.

Names are spelled as providers, gateways and instrumentations spell them: ``gpt-4o-2024-08-06``, ``azure/eu/gpt-4o``,
``bedrock/us.anthropic.claude-sonnet-4-20250514-v1:0``, ``together_ai/meta-llama/Llama-3.1-8B-Instruct-Turbo``.
"""

from __future__ import annotations

import re
from functools import lru_cache

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
