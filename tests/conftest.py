"""What holds for every test."""

import os

# Workers of a parallel run are told the width of the window: what the command line prints must not depend on it.
os.environ.pop("COLUMNS", None)
