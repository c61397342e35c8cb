"""Repeated trials (pass@k, pass^k) and people's labels, held against results. Imports config, exporters, store,
analysis and base."""
