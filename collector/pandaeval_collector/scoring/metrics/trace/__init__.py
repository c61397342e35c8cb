"""Metrics about one trace."""
