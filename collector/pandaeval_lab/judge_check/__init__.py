"""Tests a model as a judge: runs with known verdicts, reworded and reordered copies, and prompt injections.

Imports labels, replay.
"""
