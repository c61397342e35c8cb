"""API keys of the configured models in the environment."""

from __future__ import annotations

import os
from collections.abc import Iterator

from pandaeval_collector.base.prices import provider_of
from pandaeval_collector.config import Config, Problem
from pandaeval_collector.judge.call import RECORDED
from pandaeval_collector.judge.keys import missing_key


def problems(config: Config) -> Iterator[Problem]:
    """Yield models whose provider needs an API key that is not in the environment."""
    for key, model in _models(config):
        if missing := missing_key(provider_of(model), os.environ):
            cure = "set it, or name another variable in judge.api_key_env" if key == "judge.model" else "set it"
            yield Problem(key, f"the environment variable {missing} is not set; {cure}")


def _models(config: Config) -> Iterator[tuple[str, str]]:
    """Yield keys and models that litellm calls with a key of the provider's usual variable."""
    judge, (scheme, _, embedder) = config.judge, config.embedding.model.strip().partition(":")
    if scheme == "litellm":
        yield "embedding.model", embedder
    if judge.model is None or (judge.api_base or "").startswith(RECORDED):
        return
    own = None if judge.api_key_env is None else judge.model.partition("/")[0]
    named = [("judge.model", judge.model), *((f"judge.models.{name}", each) for name, each in judge.models.items())]
    named += [(f"judge.fallbacks[{number}]", each) for number, each in enumerate(judge.fallbacks)]
    yield from (each for each in named if each[1].partition("/")[0] != own)
