"""Shared base: scores, results, settings, errors, counters, untrusted text, threads and processes.

Imports no other room.
"""
