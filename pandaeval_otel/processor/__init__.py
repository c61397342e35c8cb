"""Runs in the application: the span and log processors, the context, and the sending thread.

Imports _proto, assembly, base, model, wire.
"""
