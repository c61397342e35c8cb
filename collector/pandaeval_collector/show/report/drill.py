"""The page of a drill: how many planted faults were noticed and by whom, with an example of each side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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
    missing = {name: each for name, each in told["faults"].items() if not each["n"]}
    planted = sum(each["n"] for each in faults.values())
    body = [
        "<h1>Fire drill</h1>",
        f'<p class="lead">{planted:,} faults in copies of {told["good"]:,} runs that look good, of {told["runs"]:,} '
        f"read from {safe(source)}</p>",
        f"<p>{_MEANING}</p>",
        "<h2>What is found, the least right first</h2>",
        f'<div class="card scroll figures">{_noticed(faults)}</div>',
        "<h2>Untouched runs that metrics fail</h2>",
        f'<div class="card scroll figures">{_untouched(told["untouched"])}</div>',
        *(_judge(told["judge"]) if "judge" in told else ()),
        "<h2>An example of each</h2>",
        *(part for name, each in faults.items() for part in _example(name, each)),
        "<h2>Not applicable</h2>" if missing else "",
        f'<div class="card scroll figures">{_missing(missing)}</div>' if missing else "",
    ]
    return still_page("Fire drill", body)


def _noticed(faults: Mapping[str, Any]) -> str:
    head = ("fault", "family", "copies", "right", "95 %", "failed", "cannot tell", "at the right step", "by")
    rows = (
        (
            name,
            each["family"],
            f"{each['n']:,}",
            _percent(each["right"]),
            _interval(each["right"]),
            _percent(each["noticed"]),
            _percent(each["could_not_tell"]),
            _percent(each["blamed"]),
            ", ".join(f"{metric} {_percent(share)}" for metric, share in each["by_metric"].items()),
        )
        for name, each in faults.items()
    )
    return table(head, rows)


def _untouched(shares: Mapping[str, Any]) -> str:
    rows = ((metric, f"{share['n']:,}", _percent(share), _interval(share)) for metric, share in shares.items())
    return table(("metric", "runs", "failed", "95 %"), rows)


def _judge(told: Mapping[str, Any]) -> Iterator[str]:
    """Yields the section on the judge's verdicts about some copies, beside the metrics without a model."""
    yield f"<h2>{safe(', '.join(told['models']))} as a judge</h2>"
    yield (
        f"<p>{told['copies']:,} of the copies and their originals; {told['not_judged']:,} could not be judged, since a "
        "call failed or the budget ended. Noticed: the judge passes the original and fails the copy.</p>"
    )
    head = ("metric", "pairs", "noticed", "95 %", "copy scored lower", "95 %", "original fails", "95 %", "not judged")
    rows = (
        (
            name,
            f"{each['noticed']['n']:,}",
            *(shown(each[key]) for key in ("noticed", "lower", "alarms") for shown in (_percent, _interval)),
            f"{each['not_judged']:,}",
        )
        for name, each in told["metrics"].items()
    )
    yield f'<div class="card scroll figures">{table(head, rows)}</div>'
    shares = ((name, _percent(share), _interval(share)) for name, share in told["noticed"].items())
    yield f'<div class="card scroll figures">{table(("noticed", "of the copies", "95 %"), shares)}</div>'


def _missing(faults: Mapping[str, Any]) -> str:
    rows = (
        (name, "; ".join(f"{why} ({count:,})" for why, count in each["not_applicable"].items()))
        for name, each in faults.items()
    )
    return table(("fault", "why"), rows)


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


def _percent(share: Mapping[str, Any]) -> str:
    return "–" if share["share"] is None else f"{share['share']:.0%}"


def _interval(share: Mapping[str, Any]) -> str:
    return "–" if share["low"] is None else f"{share['low']:.0%} to {share['high']:.0%}"
