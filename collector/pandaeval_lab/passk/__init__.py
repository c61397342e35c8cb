"""Repeated trials: how often the same case succeeds, and how sure that is.

Imports no other room.
"""
