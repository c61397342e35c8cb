"""Draws runs for people to label, and computes pass rates from their labels.

Imports analysis, base, config, store.
"""
