"""Run judge jobs: lease them from the store, call the model, and return results to the scoring worker.

Imports base, judge, pipeline, scoring, store.
"""
