"""Evaluation runs: scores stored traces again, on request or on a schedule.

Imports analysis, base, config, judge, pipeline, scoring, store.
"""
