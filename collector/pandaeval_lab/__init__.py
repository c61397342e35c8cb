"""pandaeval_lab says how good an agent is before and after: files and trace stores scored again, cases, repeated
trials, planted faults, people's labels, and the judge held against them.

It imports the collector, which never imports it: a running collector knows traces, turns and sessions alone.
"""

from pandaeval_lab.running.mocked import MockedToolError, mocked

__all__ = ["MockedToolError", "mocked"]
