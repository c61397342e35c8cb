"""Words that frameworks put into the user's mouth: what another agent said or did, retold as a message of role user."""

from __future__ import annotations

_REPLAYS = ("For context:", "Observation:\n")
"""ADK retells what another agent did, smolagents what a tool gave back."""


def is_replay(text: str) -> bool:
    """Whether a message of role ``user`` with this text is a framework's and no user's."""
    return text.startswith(_REPLAYS)
