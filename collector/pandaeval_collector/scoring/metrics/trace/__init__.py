"""Metrics of a trace."""
