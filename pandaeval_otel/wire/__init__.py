"""OTLP bytes: taken apart by trace, weighed, bounded, decoded. Imports model and base."""
