"""Names and ids as people write them, against those that there are: bare metric names, and ids by their beginnings.
What is unknown is refused with what was probably meant: a question that matches nothing would be answered with silence.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property

from pandaeval_collector.config import MetricNames, closest
from pandaeval_collector.scoring.registry import registry
from pandaeval_collector.show.api.problems import NO_SESSION, NO_TRACE, ProblemError
from pandaeval_collector.store.finding import Finder
from pandaeval_collector.store.listed import Wanted

_HEX = re.compile(r"[0-9a-f]{4,32}")
_SHOWN = 5
_COUNTER = "pandaeval.evaluations"


class Names:
    """Resolves names and ids that people write, by what one store holds. Any thread."""

    def __init__(self, finder: Finder, modules: tuple[str, ...]) -> None:
        """``modules``: those of the user's own metrics."""
        self._finder, self._modules = finder, modules

    def wanted(self, wanted: Wanted) -> Wanted:
        """Returns the filters with names and ids in full. Raises :class:`ProblemError` for unknown ones."""
        for column in ("agent", "service", "environment"):
            if (name := getattr(wanted, column)) is not None:
                self._check(column, name)
        for key in (pair.partition("=")[0] for pair in wanted.attribute):
            if key not in (known := self._finder.attribute_keys()):
                none = "no trace has a listed attribute; store.listed_attributes says which are"
                raise ProblemError(422, unknown("attribute", key, known, none))
        metric = None if wanted.metric is None else self.metric(wanted.metric)
        session = None if wanted.session is None else self._session(wanted.session)
        return replace(wanted, metric=metric, session=session or wanted.session)

    def metric(self, name: str) -> str:
        """Returns the key of the metric with this name. Raises :class:`ProblemError` if there is none, or several."""
        found = self._metrics.select(name)
        if not found:  # those that have results, such as metrics of a module that is no longer configured
            series = [about for about, _ in self._finder.counters(_COUNTER)]
            stored = {(str(each.get("pandaeval.level")), str(each.get("gen_ai.evaluation.name"))) for each in series}
            found = MetricNames(stored).select(name)
        if len(found) > 1:
            raise ProblemError(422, f"metric: {name} is the name of several metrics; write {' or '.join(found)}")
        if not found:
            raise ProblemError(422, f"metric: {name}: {self._metrics.unknown(name)}")
        return found[0]

    def agent(self, name: str | None) -> None:
        """Raises :class:`ProblemError` if no agent has this name."""
        if name is not None:
            self._check("agent", name)

    def trace(self, text: str) -> bytes:
        """Returns the trace id that begins with ``text``. Raises :class:`ProblemError` if there is none, or several."""
        written = text.strip().lower()
        if not _HEX.fullmatch(written):
            raise ProblemError(400, "the id of a trace has 32 hex digits, of which the first few are enough")
        if len(written) == 32:
            return bytes.fromhex(written)
        found = one_of(written, self._finder.traces_from(written, _SHOWN))
        if found is None:
            raise ProblemError(404, NO_TRACE)
        return bytes.fromhex(found)

    def session(self, text: str) -> str:
        """Returns the session id that is ``text``, else the one that begins so. Raises :class:`ProblemError`."""
        if (found := self._session(text)) is None:
            raise ProblemError(404, NO_SESSION)
        return found

    def _session(self, text: str) -> str | None:
        return one_of(text, self._finder.sessions_from(text, _SHOWN))

    @cached_property
    def _metrics(self) -> MetricNames:
        return MetricNames((metric.level, metric.name) for metric in registry(self._modules).values())

    def _check(self, column: str, name: str) -> None:
        known = self._finder.names()[column]
        if name in known or self._finder.is_named(column, name):  # type: ignore[arg-type]
            return
        raise ProblemError(422, unknown(column, name, known))


def unknown(kind: str, name: str, known: Iterable[str], none: str = "no trace is stored yet") -> str:
    """Returns the sentence for an unknown name, with its closest among ``known``; ``none``: what to say if none is."""
    known = [*known]
    meant = closest(name, known)
    if meant:
        return f"{kind}: there is no {name}; did you mean {meant}?"
    there = f"there are {', '.join(known[:_SHOWN])}{', …' if len(known) > _SHOWN else ''}" if known else none
    return f"{kind}: there is no {name}; {there}"


def one_of(text: str, found: Iterable[str]) -> str | None:
    """Returns the id in ``found`` that equals ``text``, else the only one; ``None`` for none. Raises
    :class:`ProblemError` for several."""
    ids = [*found]
    if text in ids:
        return text
    if len(ids) > 1:
        raise ProblemError(409, f"{text} is the beginning of several ids ({', '.join(ids[:_SHOWN])}): write more of it")
    return ids[0] if ids else None
