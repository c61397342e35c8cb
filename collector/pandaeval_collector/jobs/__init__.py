"""Runs judge jobs: leases them from the store, asks the model, and returns results to the scoring worker.

Imports base, judge, pipeline, scoring, store.
"""
