"""From due traces to a decision: each trace is understood by itself, then traces meet their sessions, in order."""
