"""Redaction of traces for a judge, from the settings."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import cache, reduce

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.judge.personal_data import PersonalData, check_installed
from pandaeval_collector.judge.redact import Hide, redact
from pandaeval_collector.scoring.evaluator import JudgeSettings

_recognisers = cache(PersonalData)


def hider(judge: JudgeSettings) -> Hide | None:
    """Create the redaction function, or ``None``.

    Single-threaded. Raises :class:`pandaeval_collector.base.errors.UserError`.
    """
    steps: list[Hide] = [redact] if judge.secrets else []
    if judge.pii:
        check_installed()
        steps.append(lambda text: _recognisers()(text))  # made at the first text, because the import takes seconds
    steps += [_named(name) for name in judge.custom]
    if not steps:
        return None
    return lambda text: reduce(lambda so_far, step: step(so_far), steps, text)


def _named(name: str) -> Callable[[str], str]:
    module, _, function = name.partition(":")
    try:
        found: Callable[[str], str] = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError, ValueError) as error:
        raise UserError(f"redact.custom: {name} cannot be imported ({error})") from error
    if not callable(found):
        raise UserError(f"redact.custom: {name} is not a function")
    return found
