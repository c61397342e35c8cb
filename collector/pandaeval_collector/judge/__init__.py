"""Asks a model about a trace: selects the record, builds the prompt, and validates the reply.

Imports analysis, base.
"""
