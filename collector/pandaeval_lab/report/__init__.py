"""Pages about a drill, about layers of cases and about repeated trials.

Imports passk.
"""
