"""Resolves metric names and id prefixes. For unknown names, it suggests the closest name."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property
from typing import Literal

from pandaeval_collector.config import MetricNames, closest
from pandaeval_collector.scoring.registry import registry
from pandaeval_collector.show.api.problems import NO_SESSION, NO_TRACE, ProblemError
from pandaeval_collector.store.finding import Finder
from pandaeval_collector.store.listed import Wanted

_HEX = re.compile(r"[0-9a-f]{4,32}")
_SHOWN = 5
_NO_ATTRIBUTE = "no trace has a listed attribute (store.listed_attributes)"


class Names:
    def __init__(self, finder: Finder, modules: tuple[str, ...]) -> None:
        """``modules``: of custom metrics."""
        self._finder, self._modules = finder, modules

    def wanted(self, wanted: Wanted) -> Wanted:
        """Return the filters with full names and ids. Raises :class:`ProblemError`."""
        self._check("agent", wanted.agent)
        self._check("service", wanted.service)
        self._check("environment", wanted.environment)
        for pair in wanted.attribute:
            key, known = pair.partition("=")[0], self._finder.attribute_keys()
            if key not in known:
                raise ProblemError(422, unknown("attribute", key, known, _NO_ATTRIBUTE))
        if wanted.metric is not None:
            wanted = replace(wanted, metric=self.metric(wanted.metric))
        if wanted.session is not None:
            wanted = replace(wanted, session=self._session(wanted.session) or wanted.session)
        return wanted

    def metric(self, name: str) -> str:
        """Return the only metric key with this name. Raises :class:`ProblemError`."""
        keys = self.metrics.select(name)
        if len(keys) > 1:
            raise ProblemError(422, f"metric: {name} is the name of several metrics; write {' or '.join(keys)}")
        if not keys:
            raise ProblemError(422, f"metric: {name}: {self.metrics.unknown(name)}")
        return keys[0]

    def trace(self, text: str) -> bytes:
        """Return the only trace id with the prefix ``text``. Raises :class:`ProblemError`."""
        digits = text.strip().lower()
        if not _HEX.fullmatch(digits):
            raise ProblemError(400, "a trace ID has 32 hexadecimal digits; a unique prefix is enough")
        if len(digits) == 32:
            return bytes.fromhex(digits)
        trace_id = one_of(digits, self._finder.traces_from(digits, _SHOWN))
        if trace_id is None:
            raise ProblemError(404, NO_TRACE)
        return bytes.fromhex(trace_id)

    def session(self, text: str) -> str:
        """Return the session id ``text``, or the only id with this prefix. Raises :class:`ProblemError`."""
        session_id = self._session(text)
        if session_id is None:
            raise ProblemError(404, NO_SESSION)
        return session_id

    def _session(self, text: str) -> str | None:
        return one_of(text, self._finder.sessions_from(text, _SHOWN))

    @cached_property
    def metrics(self) -> MetricNames:
        return MetricNames((metric.level, metric.name) for metric in registry(self._modules).values())

    def _check(self, column: Literal["agent", "service", "environment"], name: str | None) -> None:
        if name is None:
            return
        known = self._finder.names()[column]
        if name not in known and not self._finder.is_named(column, name):
            raise ProblemError(422, unknown(column, name, known))


def unknown(kind: str, name: str, known: Iterable[str], none: str = "no trace is stored yet") -> str:
    """Return the error for an unknown name, with its closest in ``known``. ``none``: advice if no name is known."""
    known = [*known]
    advice = none
    if known:
        advice = f"there are {', '.join(known[:_SHOWN])}"
    if len(known) > _SHOWN:
        advice += ", …"
    if meant := closest(name, known):
        advice = f"did you mean {meant}?"
    return f"{kind}: there is no {name}; {advice}"


def one_of(text: str, ids: Iterable[str]) -> str | None:
    """Return the id ``text``, else the only id, else ``None``. Raises :class:`ProblemError` for several."""
    ids = [*ids]
    if text in ids:
        return text
    if len(ids) > 1:
        raise ProblemError(
            409, f"{text} is the prefix of several IDs ({', '.join(ids[:_SHOWN])}): write a longer prefix"
        )
    return next(iter(ids), None)
