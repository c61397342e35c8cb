"""Shared by all packages: scores and results, settings, errors, counters, untrusted text, threads and processes.

Imports no other room.
"""
