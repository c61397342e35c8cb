"""Rules over a trace, formulas, and text embeddings.

Imports base.
"""
