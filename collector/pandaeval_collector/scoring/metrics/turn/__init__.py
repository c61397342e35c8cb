"""Metrics of a turn: a user's message and its answer."""
