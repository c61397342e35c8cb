"""Finds the conversation that a trace belongs to."""

from __future__ import annotations

from pandaeval_otel.normal.tree import Tree

MAX_ID_CHARS = 256


def session_id(tree: Tree) -> str | None:
    """The candidate of the best rank; of equal ranks the one on the outermost span, then on the earliest: sub-agents
    may carry ids of their own.

    Ranks are explained at ``semconv.SESSION_RANKS``. ``None`` when no span names a conversation: such a trace stands
    for itself and is never reported under an invented id.
    """
    found = [
        (rank, tree.depth(span), position, candidate)
        for position, span in enumerate(tree.spans)
        for rank, candidate in span.session_ids
        if candidate
    ]
    return min(found)[-1][:MAX_ID_CHARS] if found else None


def user_id(tree: Tree) -> str | None:
    """The user that the earliest span names."""
    return next((span.user_id[:MAX_ID_CHARS] for span in tree.spans if span.user_id), None)
