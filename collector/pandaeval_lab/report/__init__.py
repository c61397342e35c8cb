"""The report on layers of cases.

Imports no other room.
"""
