"""Metrics of a session: pure functions of its traces' results."""
