"""Plants known faults into runs that look good, and tells how many of them the metrics notice.

Imports replay.
"""
