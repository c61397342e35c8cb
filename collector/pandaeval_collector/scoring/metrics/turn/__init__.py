"""Metrics about one turn: a user's message and all that answers it."""
