"""Keys that are not there, found before anything is sent: a provider's client only notices when it is asked, and some
report it as a fault of the server, which is then tried again for a long time.
"""

from __future__ import annotations

import os
from typing import Any

_BY_KEY_ALONE = ("openai", "anthropic", "gemini", "groq", "mistral", "deepseek", "openrouter", "xai")
"""Providers, by litellm's names, that let nobody in without a key from the environment. With others there are further
ways (roles, files, servers that ask for none)."""


def missing_key(litellm: Any, model: str) -> str:
    """The variable that should hold the key of ``model``, or several with "or"; ``""`` where a key may be there."""
    try:
        provider = litellm.get_llm_provider(model)[1]
    except litellm.BadRequestError:
        return ""  # a provider that litellm does not know; asking says so
    names = litellm.validate_environment(model)["missing_keys"] if provider in _BY_KEY_ALONE else []
    # Some take a key under further names (OPENAI_ADMIN_KEY), so whoever set anything of the provider's is left to it.
    brands = tuple(name.partition("_")[0] + "_" for name in names)
    return "" if any(variable.startswith(brands) for variable in os.environ) else " or ".join(names)
