"""Splits OTLP bytes by trace, weighs, bounds and decodes them.

Imports base, model.
"""
