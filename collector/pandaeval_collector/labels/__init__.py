"""Draw runs for human labels, and compute pass rates from them.

Imports analysis, base, config, store.
"""
