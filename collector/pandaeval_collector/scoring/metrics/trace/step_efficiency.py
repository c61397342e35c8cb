"""Did the agent reach its goal without needless steps?

A judge compares the agent's steps with the fewest steps that the task needs. It does not judge whether the task was
completed (``task_completion``): few steps to a wrong answer score high. Code counts the tool calls that repeated an
earlier call without a new result. The score is at most the share of the other calls (``metadata.capped_by``,
``metadata.judged``).

Scale: 0..1, 1 means that no step was needless.
Source: PandaProbe, trace metrics, *Step Efficiency*.
"""

from pandaeval_collector.analysis.rules.tool_loop import tool_loop
from pandaeval_collector.scoring.metrics.trace._facts import TASK, judged_trace_metric, level_answer
from pandaeval_collector.scoring.metrics.trace._limits import efficiency_limit

LEVELS = {"none": 1.0, "few": 0.75, "many": 0.5, "most": 0.25, "all": 0.0}
"""Score of each level."""


METRIC = judged_trace_metric(
    "step_efficiency",
    about=__doc__,
    version="9",
    question="Did the agent reach its goal without needless steps?",
    needs="an answer or steps, and the question of the user; a judge",
    text="""
How many of the agent's steps were needless for its task? Compare them with the fewest steps that a skilled agent with
the same tools needs. Needless steps are:

- the same call again, or a call for known information
- steps that did not affect the result
- information or actions that nobody requested and that were not used
- long thoughts in circles that lead to no next step

Retries after a failure, checks before an irreversible action, paging, waiting and parallel calls with used results are
not needless. Many steps are fine if the task needs many, even if it was not accomplished.

Example: the agent read three pages of a list, and the answer uses all of them: "none". It read the same file four times
and searched for unrequested information: "most".

Guide:
none  no step could be left out
few   one or two small steps too many
many  a large part of the work was needless
most  most of the work was needless
all   no step served the task
""",
    answer=level_answer("Efficiency", "The needless steps and why, or that there are none.", LEVELS),
    levels=LEVELS,
    score=lambda value, found, trace, facts: efficiency_limit(trace).applied(value, found.reason, facts),
    extractions=(TASK,),
    given=lambda trace, facts: {**facts, "calls_that_repeat_another_in_vain": tool_loop(trace).wasted_calls},
)
