"""The report on the layers of cases.

Imports no other room.
"""
