"""The metrics, their declarations, and the evaluator that runs them.

Imports analysis, base, judge.
"""
