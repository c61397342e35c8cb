"""Shared by all packages: attribute names, caps, JSON, printable names, and discovery of plug-ins.

Imports no other room.
"""
