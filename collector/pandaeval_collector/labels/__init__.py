"""People's verdicts: drawn for, made into pass rates, and what a calibration by them suggests.

Imports analysis, base, config, store.
"""
