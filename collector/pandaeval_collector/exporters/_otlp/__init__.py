"""OTLP output: requests, transport and answers."""
