"""The way of a span: stored and acknowledged, assembled, scored by the line, decided in one transaction.

Imports analysis, base, exporters, receivers, scoring, store.
"""
