"""People's verdicts: read from files, drawn for, held against judges, made into pass rates and learned monitors.

Imports analysis, base, config, store.
"""
