"""Did the agent do its job: all that it was asked for and may do, with the right details, and nothing that it must not?

A judge reads the whole conversation after its end, and lists the requests with their outcomes, broken rules, false
statements and the first wrong step. In detail: each request and its outcome, rules that were
broken, false statements to the user, and the first step that went wrong and was never corrected. Then it reports
whether the agent did right, and how sure it is. A right refusal is right. Code checks that the steps that are named
exist and that the parts fit the verdict; a contradiction is asked about once more. It does not judge tone or length,
nor whether the user's wishes were fulfilled (``goal_completion``).

If the judge's certainty (``metadata.sure``) is within ``judge.unclear`` (25 to 75), the label is ``unclear``: inside
this band, verdicts were right in 18 of 30 runs. If the judge finds the conversation correct, but ``response`` found
that it ended in a crash or that the agent claimed a success after a failure, the label is ``disputed``. Neither passes
or fails; rates, gates and alerts leave both out and show how many there are.

Scale: 0..1, the certainty of the judge that the conversation was handled correctly; at most 0.49 if it was not.
Source: ours, measured on conversations that people and checkers judged.
"""

from __future__ import annotations

from pandaeval_collector.scoring.metrics.session._correctness import finding_of, of_conversation

METRIC = of_conversation("correctness", "5", "Did the agent do its job?", __doc__, finding_of)
