"""pandaeval_collector says how good it was: it scores agent traces and sessions, and emits the scores as OTel."""
