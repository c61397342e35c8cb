"""Score stored traces again, on request or on a schedule (evaluation runs).

Imports analysis, base, config, judge, pipeline, scoring, store.
"""
