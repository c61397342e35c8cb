"""Commands of the ``pandaeval`` program; each public module holds a command or a group of commands.

Imports alignment, cases, drill, judge_check, labels, passk, replay, report, running.
"""
