"""Metrics of trials: compare one attempt at a case with the case's expectations.

Imports cases.
"""
