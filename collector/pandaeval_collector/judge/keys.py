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
"""Key variables of providers (litellm's names) that always need a key from the environment. Other providers also accept
roles or files, or need no key."""


def missing_key(provider: str, environ: Mapping[str, str]) -> str:
    """Return the missing key variables of ``provider``, joined by "or", or ``""``."""
    names = BY_KEY_ALONE.get(provider, ())
    # Some providers accept other variables (OPENAI_ADMIN_KEY), so any variable of the provider is enough.
    brands = tuple(name.partition("_")[0] + "_" for name in names)
    return "" if any(variable.startswith(brands) for variable in environ) else " or ".join(names)
