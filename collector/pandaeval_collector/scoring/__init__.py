"""The metrics, what they are declared with, and the evaluator that runs them.

Imports analysis, base, judge.
"""
