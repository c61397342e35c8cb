"""From raw spans to a trace in normal form: merges the dialects' readings, then reads the tree as a whole.

Imports base, dialects, model, wire.
"""
