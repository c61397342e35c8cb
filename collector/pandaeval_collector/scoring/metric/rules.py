"""What has to hold of a metric for it to be run at all, whoever wrote it."""

from __future__ import annotations

import re
from typing import Any

import orjson

LEVELS = ("trace", "turn", "session", "trial", "task")
LAYERS = ("reasoning", "action", "outcome")
KINDS = ("embedding", "llm", "code", "math")
_SCALE = re.compile(r"(-?\d+(?:\.\d+)?)-(-?\d+(?:\.\d+)?)")
_NAME = re.compile(r"[a-z](?:_?[a-z0-9])*")


def check(metric: Any) -> None:
    """Raises ``ValueError``, saying what to write instead, for a metric that would not run, or would run and fail the
    results of others."""
    if metric.level not in LEVELS:
        raise ValueError(f"level {metric.level!r} is not scored in this version; write {' or '.join(LEVELS)}")
    if not (isinstance(metric.name, str) and _NAME.fullmatch(metric.name)):
        raise ValueError(f"name {metric.name!r}: write small letters, digits and single underscores, as in tool_loop")
    if metric.kind not in KINDS:
        raise ValueError(f"kind {metric.kind!r} is not one of {', '.join(KINDS)}")
    if not (isinstance(metric.version, str) and metric.version):
        raise ValueError('version: write a text, as in "1"')
    if not callable(metric.evaluate):
        raise ValueError("evaluate is no function")
    _check_judged(metric)
    if metric.level == "trial" and metric.layer not in LAYERS:
        raise ValueError(f"layer {metric.layer!r}: a metric of level trial has one of {', '.join(LAYERS)}")
    if metric.signals and metric.level != "session":
        raise ValueError("signals: only a metric of level session reads the results of others")
    _check_threshold(metric.threshold(None) if callable(metric.threshold) else metric.threshold, *ends(metric.scale))
    if metric.level == "turn" and (metric.texts is not None or metric.kind == "embedding"):
        raise ValueError("texts: nothing is embedded for a metric of level turn")
    try:
        orjson.dumps(metric.settings, option=orjson.OPT_SORT_KEYS | orjson.OPT_SERIALIZE_NUMPY)
    except TypeError as error:
        raise ValueError(f"settings are part of a result's id and have to be JSON: {error}") from error


def _check_judged(metric: Any) -> None:
    if (metric.kind == "llm") != (metric.ask is not None):
        raise ValueError("ask and kind llm go together: give both or neither")
    if metric.kind == "llm" and metric.needs_session:
        raise ValueError("needs_session: what a judge is shown of the session it sees anyway")


def ends(scale: str) -> tuple[float, float]:
    """The worst and the best end of a scale such as ``"1-5"``; ``""`` is 0..1. Raises ``ValueError`` for others."""
    if not scale:
        return 0.0, 1.0
    found = _SCALE.fullmatch(scale)
    if found is None or float(found[1]) >= float(found[2]):
        raise ValueError(f'scale {scale!r}: write its worst and its best end, as in "1-5", or leave it out for 0..1')
    return float(found[1]), float(found[2])


def _check_threshold(threshold: Any, least: float, most: float) -> None:
    if isinstance(threshold, bool) or not isinstance(threshold, int | float) or not least <= threshold <= most:
        raise ValueError(f"threshold {threshold!r} does not lie in {least:g}..{most:g}")
