"""Asks a model about a trace: what it is shown, how it is asked, and which replies are verdicts.

Imports analysis, base.
"""
