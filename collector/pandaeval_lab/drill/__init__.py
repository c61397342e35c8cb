"""Plants known faults into good runs, and counts how many of them the metrics notice.

Imports passk, replay.
"""
