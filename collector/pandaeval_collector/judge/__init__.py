"""Asking a model about a trace: what it is shown, how it is asked, and what counts as an answer."""
