"""OTLP output: makes requests, sends them, and interprets the answers."""
