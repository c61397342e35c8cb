"""``pandaeval questions``: the judge's open questions."""

from __future__ import annotations

from pandaeval_collector.cli import _run_options as given
from pandaeval_collector.cli._output import Listing, show
from pandaeval_collector.cli._run_place import ApiClient, with_api_or_store

_QUESTIONS = Listing(
    ("id", "runs", ("agents", lambda row: ", ".join(row["agents"])), "question"), "no open question", says_why=True
)


@with_api_or_store
def questions(format_: given.Format = "table", *, api: ApiClient) -> None:
    """List unanswered questions for the agent's owner."""
    show(api.get("/questions")["items"], _QUESTIONS, format_)
