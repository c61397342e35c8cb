"""What holds for every test."""

import os

from hypothesis import HealthCheck, settings

# Workers of a parallel run are told the width of the window: what the command line prints must not depend on it.
os.environ.pop("COLUMNS", None)

# How long an example takes says more about what else the machine does.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")
