"""Run judge jobs: lease them from the store, call the model, and return results.

Imports base, judge, pipeline, scoring, store.
"""
