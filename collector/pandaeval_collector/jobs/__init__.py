"""Runs judge jobs: from the store's table to a model, and the results back to the line.

Imports base, judge, pipeline, scoring, store.
"""
