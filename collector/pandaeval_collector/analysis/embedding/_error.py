"""What goes wrong with embedders, as a sentence that names the cure."""

from __future__ import annotations

from pandaeval_collector.base.errors import UserError


class EmbedderError(UserError):
    """An embedder that is unknown, not installed, not found or out of reach."""
