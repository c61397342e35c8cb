"""Splits OTLP bytes by trace, estimates their weight, bounds and decodes them.

Imports base, model.
"""
