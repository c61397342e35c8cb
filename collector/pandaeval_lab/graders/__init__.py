"""Metrics of trials: one attempt at a case, held against what the case expects.

Imports cases.
"""
