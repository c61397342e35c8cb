"""Runs cases: the agent under test, the simulated user, and the receiver of the agent's spans.

Imports cases, replay.
"""
