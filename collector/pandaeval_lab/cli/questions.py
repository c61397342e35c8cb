"""``pandaeval questions``: the judge's open questions."""

from __future__ import annotations

from pandaeval_collector.cli import _run_options as given
from pandaeval_collector.cli._listings import Listing, show
from pandaeval_collector.cli._run_place import Place, placed

_QUESTIONS = Listing(
    ("id", "runs", ("agents", lambda row: ", ".join(row["agents"])), "question"), "no open question", says_why=True
)


@placed
def questions(format_: given.Format = "table", *, place: Place) -> None:
    """List open questions to the agent's owner."""
    with place.looking() as api:
        show(api.get("/questions")["items"], _QUESTIONS, format_)
