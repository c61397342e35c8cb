"""Runs in the application: the span and log processors, the context, and the thread that sends.

Imports _proto, assembly, base, model, wire.
"""
