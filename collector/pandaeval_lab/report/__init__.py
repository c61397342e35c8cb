"""The page about a drill, and the report on layers of cases.

Imports no other room.
"""
