"""Keys whose function this version does not have yet. Better refused than accepted and ignored."""

from __future__ import annotations

from collections.abc import Iterator

from pandaeval_collector.config._problem import Problem
from pandaeval_collector.config._tree import Config


def check_available(config: Config) -> Iterator[Problem]:
    """One problem per key that is set and would do nothing."""
    asked_for = {
        "sessions.forward_to": config.sessions.forward_to is not None,
    }
    for key, is_set in asked_for.items():
        if is_set:
            yield Problem(key, "is not available in this version: leave it out")
