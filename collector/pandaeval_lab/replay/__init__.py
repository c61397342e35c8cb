"""Scores recorded traces again, from files, trace stores and the collector's own store.

Imports cases, passk.
"""
