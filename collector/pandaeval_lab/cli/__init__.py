"""Commands of the ``pandaeval`` program: each public module here holds one, or a group of them.

Imports alignment, cases, drill, judge_check, labels, passk, replay, report, running.
"""
