"""Pure functions: rules over a trace, formulas, and text embeddings.

Imports base.
"""
