"""Tries a model as a judge before it is trusted: sessions and runs whose verdicts are known, the same runs in other
words and order, and runs that try to talk to the judge.

Imports labels, replay.
"""
