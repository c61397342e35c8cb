"""The page of a drill: how many planted faults were noticed and by whom, with an example of each side by side."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pandaeval_collector.show.report.shell import safe, still_page, table

_MEANING = (
    "Each fault was planted, one at a time, into copies of runs that look good, and the copies were scored by the same "
    "line. A planted fault is not a real one: the shares say what plain faults of these kinds would meet. Right is "
    "that a metric fails the copy; of faults of telemetry, with which nothing is wrong, that metrics cannot tell."
)


def page(told: Mapping[str, Any], source: str) -> str:
    """Returns the whole HTML page. ``told``: the JSON object of a drill; ``source``: where its runs were read."""
    faults = {name: each for name, each in told["faults"].items() if each["n"]}
    planted = sum(each["n"] for each in faults.values())
    missing = [
        (name, "; ".join(f"{why} ({count:,})" for why, count in each["not_applicable"].items()))
        for name, each in told["faults"].items()
        if not each["n"]
    ]
    head = ("fault", "family", "copies", "right", "95 %", "failed", "cannot tell", "at the right step", "by")
    untouched = ((name, f"{each['n']:,}", percent(each), interval(each)) for name, each in told["untouched"].items())
    body = [
        "<h1>Fire drill</h1>",
        f'<p class="lead">{planted:,} faults in copies of {told["good"]:,} runs that look good, of {told["runs"]:,} '
        f"read from {safe(source)}</p>",
        f"<p>{_MEANING}</p>",
        "<h2>What is found, the least right first</h2>",
        _card(head, fault_rows(faults)),
        "<h2>Untouched runs that metrics fail</h2>",
        _card(("metric", "runs", "failed", "95 %"), untouched),
        *(_judge(told["judge"]) if "judge" in told else ()),
        "<h2>An example of each</h2>",
        *(part for name, each in faults.items() for part in _example(name, each)),
        "<h2>Not applicable</h2>" if missing else "",
        _card(("fault", "why"), missing) if missing else "",
    ]
    return still_page("Fire drill", body)


def fault_rows(faults: Mapping[str, Any], to: str = " to ", most: int | None = None) -> Iterator[tuple[str, ...]]:
    """Yields a row of figures on each fault. ``to``: what stands between the ends of an interval; ``most``: how many of
    the metrics that noticed it are named."""
    for name, each in faults.items():
        by = ", ".join(f"{metric} {percent(share)}" for metric, share in [*each["by_metric"].items()][:most])
        shares = (percent(each[key]) for key in ("noticed", "could_not_tell", "blamed"))
        right = percent(each["right"]), interval(each["right"], to)
        yield name, each["family"], f"{each['n']:,}", *right, *shares, by


def judged_rows(metrics: Mapping[str, Any], to: str = " to ") -> Iterator[tuple[str, ...]]:
    """Yields a row of figures on each judged metric."""
    for name, each in metrics.items():
        shares = (
            shown for key in ("noticed", "lower", "alarms") for shown in (percent(each[key]), interval(each[key], to))
        )
        yield name, f"{each['noticed']['n']:,}", *shares, f"{each['not_judged']:,}"


def _judge(figures: Mapping[str, Any]) -> Iterator[str]:
    """Yields the section on the judge's verdicts about some copies, beside the metrics without a model."""
    yield f"<h2>{safe(', '.join(figures['models']))} as a judge</h2>"
    yield (
        f"<p>{figures['copies']:,} of the copies and their originals; {figures['not_judged']:,} could not be judged, "
        "since a call failed or the budget ended. Noticed: the judge passes the original and fails the copy.</p>"
    )
    head = ("metric", "pairs", "noticed", "95 %", "copy scored lower", "95 %", "original fails", "95 %", "not judged")
    yield _card(head, judged_rows(figures["metrics"]))
    shares = ((name, percent(share), interval(share)) for name, share in figures["noticed"].items())
    yield _card(("noticed", "of the copies", "95 %"), shares)


def _card(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    return f'<div class="card scroll figures">{table(head, rows)}</div>'


def _example(name: str, each: Mapping[str, Any]) -> Iterator[str]:
    yield f"<h3>{safe(name)}</h3><p>{safe(each['text'])}</p>"
    for one in each["examples"]:
        yield '<div class="cards two">'
        for title, lines in (("as it was", one["before"]), ("with the fault", one["after"])):
            text = safe("\n".join(lines) or "(nothing stands here)")
            yield f'<div class="card"><h2>{title}</h2><div class="text">{text}</div></div>'
        yield "</div>"
        said = [f"{metric}: {reason}" for metric, reason in one["reasons"].items()] or ["noticed by nobody"]
        yield f'<p class="lead">{safe(one["what"].rstrip("."))}: {safe("; ".join(said))}</p>'


def percent(share: Mapping[str, Any]) -> str:
    """Writes a share in whole percent."""
    return "–" if share["share"] is None else f"{share['share']:.0%}"


def interval(share: Mapping[str, Any], to: str = " to ") -> str:
    """Writes the interval of a share."""
    return "–" if share["low"] is None else f"{share['low']:.0%}{to}{share['high']:.0%}"
