"""Serves every room: attribute names, caps, JSON, printable names, and the discovery of components.

Imports no other room.
"""
