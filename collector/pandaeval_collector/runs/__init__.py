"""Scores stored traces again, on request or on a schedule, and scores files with the same line.

Imports analysis, base, config, jobs, judge, pipeline, scoring, store.
"""
