"""What every room uses: attribute names, caps, JSON, printable names, and how components are found.

Imports no other room.
"""
