"""Repeated trials (pass@k, pass^k) and people's labels, held against results.

Imports analysis, base, config, judge, store.
"""
