"""Pure functions: rules that read one trace, formulas over numbers and words, and text to vectors.

Imports base.
"""
