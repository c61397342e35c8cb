"""Kafka: spans from a topic that several collectors share, the ownership of their sessions, and results to a topic.

Imports base, exporters, receivers, store.
"""
