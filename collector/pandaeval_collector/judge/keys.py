"""Variables with the API keys of providers."""

from __future__ import annotations

from collections.abc import Mapping

BY_KEY_ALONE: Mapping[str, tuple[str, ...]] = {
    **{
        name: (f"{name.upper()}_API_KEY",)
        for name in ("openai", "anthropic", "groq", "mistral", "deepseek", "openrouter", "xai")
    },
    "gemini": ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
}
"""Providers, by litellm's names, that let nobody in without a key from the environment. With others there are further
ways (roles, files, servers that ask for none)."""


def missing_key(provider: str, environ: Mapping[str, str]) -> str:
    """Return the missing key variables of ``provider``, joined by "or", or ``""``."""
    names = BY_KEY_ALONE.get(provider, ())
    # Some take a key under further names (OPENAI_ADMIN_KEY), so whoever set anything of the provider's is left to it.
    brands = tuple(name.partition("_")[0] + "_" for name in names)
    return "" if any(variable.startswith(brands) for variable in environ) else " or ".join(names)
