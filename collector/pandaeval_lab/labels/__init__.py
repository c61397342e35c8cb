"""Reads people's labels from files, and compares judges with them.

Imports no other room.
"""
