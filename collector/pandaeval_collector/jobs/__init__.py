"""Runs judge jobs: from the store's table to a model and back into the line; checks a model as a judge.

Imports base, judge, pipeline, scoring, store.
"""
