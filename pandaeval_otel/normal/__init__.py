"""Turns raw spans into a normalised trace: merges the readings of all dialects, then reads the tree as a whole.

Imports base, dialects, model, wire.
"""
