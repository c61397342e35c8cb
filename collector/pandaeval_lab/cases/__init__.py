"""Cases with references: the case file model and grading of trials.

A case states expectations of a run. A trial is an attempt, whose traces name the case.

Imports no other room.
"""

from pandaeval_lab.cases.files import read_suite
from pandaeval_lab.cases.model import Case, Suite
from pandaeval_lab.cases.trial import Trial, TrialContext

__all__ = ["Case", "Suite", "Trial", "TrialContext", "read_suite"]
