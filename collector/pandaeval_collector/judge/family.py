"""Which family a model is of, read from its name: models rate work of their own kind too high, and share its faults.

Names come as providers, gateways and instrumentations spell them: ``gpt-4o-2024-08-06``, ``azure/eu/gpt-4o``,
``bedrock/us.anthropic.claude-sonnet-4-20250514-v1:0``, ``together_ai/meta-llama/Llama-3.1-8B-Instruct-Turbo``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

_WORDS: Mapping[str, str] = {
    "gpt": "gpt chatgpt gptoss codex davinci babbage curie ada",
    "claude": "claude",
    "gemini": "gemini gemma codegemma medgemma shieldgemma learnlm palm bison unicorn",
    "llama": "llama codellama metallama tinyllama",
    "qwen": "qwen codeqwen qwq qvq tongyi",
    "mistral": "mistral mixtral ministral codestral magistral pixtral devstral mathstral voxtral",
    "deepseek": "deepseek",
    "grok": "grok",
    "command": "command c4ai aya",
    "nova": "nova titan",
    "phi": "phi",
    "glm": "glm chatglm codegeex",
    "kimi": "kimi moonshot moonlight",
    "granite": "granite",
    "jamba": "jamba jurassic",
    "ernie": "ernie",
    "doubao": "doubao skylark",
    "hunyuan": "hunyuan",
    "minimax": "minimax abab",
    "nemotron": "nemotron",
    "yi": "yi",
    "falcon": "falcon",
    "olmo": "olmo tulu molmo",
    "solar": "solar",
    "sonar": "sonar",
    "palmyra": "palmyra",
    "reka": "reka",
    "dbrx": "dbrx",
    "arctic": "arctic",
    "smollm": "smollm",
    "internlm": "internlm intern",
    "lfm": "lfm",
}
"""The words that name each family, without the number that may be behind them (``qwen3``, ``phi4``)."""
_FAMILIES = {word: family for family, words in _WORDS.items() for word in words.split()}
_WORD = re.compile(r"[a-z]+\d*[a-z]*\d*")
_REASONER = re.compile(r"(?:^|\.|openai-)o[1-9](?=$|[-:@])")
"""OpenAI's o1, o3, o4-mini …: too short a word to be looked for anywhere but at the beginning."""
_VERSION = re.compile(r"v?\d[a-z\d]*$")
_DATE = re.compile(r"[-@](?:\d{4}-?\d{2}-?\d{2}|\d{6}|\d{4})(?=$|[-:])")
_TAIL = re.compile(r"(?:[-@:](?:latest|default|v\d+(?::\d+)?|\d+))+$")
_LONGEST = 200


@lru_cache(maxsize=512)
def family(model: str) -> str | None:
    """The family by its best known name, ``None`` for a name that tells of none, such as that of a deployment."""
    name = model[:_LONGEST].lower()
    base = _base(name)
    if _REASONER.search(base):
        return "gpt"
    return _named(base) or _named(name.partition("/")[2])


def kin(one: str, other: str) -> str | None:
    """What two models have in common: their family, or the name itself where it tells of none; else ``None``."""
    of_one = family(one)
    if of_one is not None:
        return of_one if of_one == family(other) else None
    bare = plain(one)
    return bare if bare and bare == plain(other) else None


def plain(model: str) -> str:
    """The last part of a name, in small letters, without date and version."""
    return _TAIL.sub("", _DATE.sub("", _base(model[:_LONGEST].lower())))


def _base(name: str) -> str:
    """What stands behind the last slash; of a name such as ``ft:gpt-4o-mini:team::id`` the model that was tuned."""
    base = name.rpartition("/")[2]
    return base.split(":")[1] if base.startswith("ft:") else base


def _named(name: str) -> str | None:
    """The family that is named first."""
    for found in _WORD.finditer(name):
        word = found.group()
        known = _FAMILIES.get(word) or _FAMILIES.get(_VERSION.sub("", word))
        if known is not None:
            return known
    return None
