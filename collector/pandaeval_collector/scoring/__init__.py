"""The metrics, what they are declared with, cases with a reference, and the evaluator that runs them.

Imports analysis, base, judge.
"""
