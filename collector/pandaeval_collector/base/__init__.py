"""What every room uses: scores and results, settings, errors, counts, other people's text, threads and processes.

Imports no other room.
"""
