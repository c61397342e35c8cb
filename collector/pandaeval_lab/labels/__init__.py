"""People's verdicts: read from files, held against judges, and made into problem scores.

Imports no other room.
"""
