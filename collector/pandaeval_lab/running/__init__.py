"""Runs cases: the agent under test, the user who talks to it, and the collector at which its spans arrive.

Imports cases, replay.
"""
