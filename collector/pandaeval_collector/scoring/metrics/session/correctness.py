"""Did the agent do its job: all that it was asked for and may do, with the right details, and nothing that it must not?

A judge reads the conversation after its end, and lists requests with outcomes, broken rules, false statements and the
first uncorrected wrong step. Then it gives a verdict with a certainty. A justified refusal is correct. It does not
judge tone, length or whether the user's wishes were fulfilled (``goal_completion``). If a reply has contradictions or
nonexistent steps, code requests a repair once. If a session has more than 24 traces, the judge sees only the first
trace and the newest 23. If it sees less than half of the conversation, there is no score.

The label is ``unclear`` if the certainty (``metadata.sure``) is within ``judge.unclear``. It is ``disputed`` if the
judge finds no fault, but ``response`` found a crash in the last trace or a false claim of success. Neither label passes
or fails; rates, gates and alerts leave both out.

Scale: 0..1, the certainty of the judge that the conversation was handled correctly; a wrong run has at most 0.49.
Source: ours, measured on conversations that people and checkers judged.
"""

from pandaeval_collector.scoring.metrics.session._correctness import finding_of, of_conversation

METRIC = of_conversation("correctness", "5", "Did the agent do its job?", __doc__, finding_of)
