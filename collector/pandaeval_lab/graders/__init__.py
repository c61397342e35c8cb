"""Metrics of trials: compare an attempt at a case with the case's expectations.

Imports cases.
"""
