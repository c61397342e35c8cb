"""Tests a model as a judge: runs with known verdicts, padded and reordered copies, and prompt injections.

Imports labels, replay.
"""
