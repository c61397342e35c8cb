"""Commands of the ``pandaeval`` program; each public module holds one command or one group of commands.

Imports alignment, cases, drill, judge_check, labels, passk, replay, report, running.
"""
