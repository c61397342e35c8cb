"""``pandaeval rulings``: answers the judge's questions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import typer

from pandaeval_collector.cli import _run_options as given
from pandaeval_collector.cli._options import argument, given_by, option
from pandaeval_collector.cli._output import Listing, Row, many, message, show, show_one
from pandaeval_collector.cli._person import confirm
from pandaeval_collector.cli._run_place import ApiClient, with_collector_api
from pandaeval_collector.show.view.texts import dollars
from pandaeval_lab.cli.runs import ended

_LEAST_USD = 0.01
_RULINGS = Listing(
    ("id", ("agent", lambda row: row["agent"] or "all"), "metric", "state", "author", "date", "text"),
    "no rulings",
    says_why=True,
)


@dataclass(frozen=True, slots=True)
class TrialOptions:
    text: Annotated[str, argument("The ruling, a sentence that the judge follows.")]
    question: Annotated[str, option("ID of the answered question; default: all questions.")] = ""
    agent: Annotated[str, option("Apply the ruling to this agent; default: all agents.")] = ""
    budget: Annotated[float | None, option("Maximum US dollars; default: twice the estimate, or 0.01.", min=0.0)] = None
    yes: Annotated[bool, option("Do not ask before judge calls or saving the ruling.", "--yes")] = False
    format_: given.Format = "table"

    @property
    def ruling(self) -> dict[str, Any]:
        return {"text": self.text, "question": self.question, "agent": self.agent, "author": "people"}


rulings = typer.Typer(help="Answer the judge's questions, and manage the answers.", no_args_is_help=True)


@rulings.command("list")
@with_collector_api
def list_(format_: given.Format = "table", *, api: ApiClient) -> None:
    """List the rulings."""
    found = api.get("/rulings")
    show(found["items"], _RULINGS, format_)
    if format_ == "table":
        typer.echo(f"file: {found['path']}")


@rulings.command("answer")
@with_collector_api
@given_by("options", TrialOptions)
def answer(options: TrialOptions, *, api: ApiClient) -> None:
    """Show the effect of a ruling, keep it, and judge runs again."""
    run = _tried(api, options)
    if not options.yes:
        confirm("Keep the ruling?", "the ruling is not kept")
    kept = api.post("/rulings", {"run": run})
    message(f"ruling {kept['ruling']['id']} is kept; the judge repeats {many(kept['again'], 'verdict')}")


@rulings.command("remove")
@with_collector_api
def remove(ruling_id: Annotated[str, argument("ID of a ruling.", metavar="ID")], *, api: ApiClient) -> None:
    """Remove a ruling. Earlier verdicts stay."""
    api.delete(f"/rulings/{ruling_id}")
    typer.echo(f"ruling {ruling_id} is removed")


def _tried(api: ApiClient, options: TrialOptions) -> str:
    dry = api.post("/rulings/try", {**options.ruling, "dry_run": True})
    usd = dry["cost_usd"]
    price = "price unknown" if usd is None else dollars(usd)
    calls, tokens = many(dry["calls"], "call"), many(dry["prompt_tokens"] + dry["completion_tokens"], "token")
    message(f"{many(dry['traces'], 'trace')}: {calls}, {tokens}, {price}")
    if not options.yes:
        confirm("Ask the judge?", "the judge is not asked")
    limit = max(_LEAST_USD, 2 * (usd or 0.0)) if options.budget is None else options.budget
    run = api.post("/rulings/try", {**options.ruling, "budget_usd": limit})
    run = ended(api, run["id"])
    show_one(api.get("/runs/compare", a=run["id"], b="live"), _tell_effect, options.format_)
    if run["error"]:
        message(f"the trial stopped early: {run['error']}")
    return str(run["id"])


def _tell_effect(both: Row) -> None:
    for each in both["metrics"]:
        (after, before), pairs = each["decided"], each["pairs"]
        line = f"{each['metric']}: decided {before} → {after} of {pairs}; {many(each['flips'], 'verdict')} flipped"
        if each["labelled"]:
            line += "; agrees with labels {1} → {0} of ".format(*each["right"]) + str(each["labelled"])
        typer.echo(line)
