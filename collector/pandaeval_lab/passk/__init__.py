"""Repeated trials: success rates of a case, with their uncertainty.

Imports no other room.
"""
