"""Recorded traces, of files and of trace stores, scored again by the line of a collector, and the trials among them.

Imports cases, passk.
"""
