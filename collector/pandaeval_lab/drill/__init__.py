"""Plants known faults into good runs, and counts the faults that metrics notice.

Imports passk, replay.
"""
