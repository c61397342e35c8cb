"""Metrics about a session: pure functions of what its traces were found to be."""
