"""Pure functions: rules over one trace, formulas over numbers and words, and embeddings of text.

Imports base.
"""
