"""The path of a span: store, acknowledge, assemble, score and decide in one transaction.

Imports analysis, base, exporters, receivers, scoring, store.
"""
