"""OTLP bytes: taken apart by trace, weighed, bounded and decoded.

Imports base, model.
"""
