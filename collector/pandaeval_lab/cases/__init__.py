"""Cases with a reference: the model of a case file, and the grading of its trials.

A case says what is expected of a run; a trial is one attempt at a case, the trace or traces of which name it.

Imports no other room.
"""

from pandaeval_lab.cases.files import read_suite
from pandaeval_lab.cases.model import Case, Suite
from pandaeval_lab.cases.trial import Trial, TrialContext

__all__ = ["Case", "Suite", "Trial", "TrialContext", "read_suite"]
