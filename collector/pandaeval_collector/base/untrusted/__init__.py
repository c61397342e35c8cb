"""Untrusted text: secrets, terminal control characters, provider errors."""
