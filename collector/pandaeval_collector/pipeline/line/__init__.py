"""Turns due traces into decisions: scores each trace alone, then files all traces under sessions."""
