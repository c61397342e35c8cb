"""People's verdicts: drawn for, and made into pass rates.

Imports analysis, base, config, store.
"""
