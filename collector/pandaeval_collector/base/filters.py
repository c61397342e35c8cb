"""List filters for traces, sessions and results: API parameters, run filters, command options and MCP arguments."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Literal

MOST_TEXT = 500
"""Maximum characters of a filter."""
MOST_PAIRS = 10
PAIR = r"^[^=\s][^=]*=(.|\n)*$"
"""Pattern of ``key=value``."""
STATUSES = ("error", "ok")
SEVERITIES = ("low", "medium", "high", "critical")
"""Least severe first."""
OUTCOMES = ("scored", "assumed", "unscored")
TIMES = ("since", "until")
OF_RESULTS = ("failed", "metric", "outcome", "label", "success", "incident")
"""Filters that choose runs by their results."""


@dataclass(frozen=True, slots=True)
class Filter:
    """A list filter.

    ``name``: API parameter and field of :class:`pandaeval_collector.store.listed.Wanted` (times add ``_ms``). ``kind``:
    of value; ``pairs`` is repeatable, and all must match. ``option``: command option, if different.
    """

    name: str
    kind: Literal["time", "text", "flag", "outcome", "status", "pairs", "number"]
    meaning: str
    option: str = ""


FILTERS = (
    Filter("since", "time", "Show traces that started at or after this time"),
    Filter("until", "time", "Show traces that started before this time"),
    Filter("agent", "text", "Name of the root agent."),
    Filter("service", "text", "service.name of the application."),
    Filter("environment", "text", "Deployment environment."),
    Filter("user", "text", "ID of the user."),
    Filter("session", "text", "ID of the session."),
    Filter(
        "failed", "flag", "Show traces with a failure or error. If false, show the others.", "--failed/--not-failed"
    ),
    Filter("status", "status", "Show traces that ended with this status."),
    Filter("metric", "text", "Show traces and sessions with a result of this metric.", "--with-metric"),
    Filter("outcome", "outcome", "Show traces and sessions with a result that has this outcome.", "--with-outcome"),
    Filter("label", "text", "Show traces and sessions with a result that has this label.", "--with-label"),
    Filter(
        "success",
        "flag",
        "Show traces and sessions with a result that passed. If false, with a result that failed.",
        "--with-pass/--with-fail",
    ),
    Filter("incident", "text", "Show traces and sessions with a failure of this incident."),
    Filter("text", "text", "Show traces that contain this text in the beginning of the input or the answer."),
    Filter("min_seconds", "number", "Minimum duration of a trace, in seconds.", "--min-seconds"),
    Filter("min_usd", "number", "Minimum cost in US dollars, from the spans or by list price.", "--min-usd"),
    Filter("attribute", "pairs", "Show traces with this value of a listed attribute."),
)


def meaning(name: str) -> str:
    [found] = (each for each in FILTERS if each.name == name)
    return found.meaning if found.meaning.endswith(".") else f"{found.meaning} (RFC 3339)."


def but_times() -> Iterator[Filter]:
    """Return the filters without times, for schedules."""
    return (each for each in FILTERS if each.kind != "time")


def of_runs() -> list[Filter]:
    """Return the filters that do not select runs by results. Selection by results would distort pass rates."""
    return [each for each in FILTERS if each.name not in OF_RESULTS]


def in_place_of(
    name: str, options: Mapping[str, tuple[Any, Any]], make: Callable[..., Any]
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that replaces parameter ``name`` by ``options``. ``make`` computes it from their values.

    If ``make`` returns a context manager, the command runs within it, and gets the value that it yields.
    """

    def made(command: Callable[..., Any]) -> Callable[..., Any]:
        def called(*own: Any, **given: Any) -> Any:
            computed = make(**{each: given.pop(each) for each in options if each in given})
            with computed if isinstance(computed, AbstractContextManager) else nullcontext(computed) as value:
                return command(*own, **given, **{name: value})

        called.__doc__, called.__name__ = command.__doc__, command.__name__
        keyword, parameters = inspect.Parameter.KEYWORD_ONLY, []
        for each in inspect.signature(command, eval_str=True).parameters.values():
            if each.name == name:
                parameters += [
                    inspect.Parameter(option, keyword, default=default, annotation=annotation)
                    for option, (annotation, default) in options.items()
                ]
            else:
                parameters.append(each if each.name == "self" else each.replace(kind=keyword))
        called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        called.__annotations__ = {}
        return called

    return made
