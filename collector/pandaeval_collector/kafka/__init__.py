"""Kafka: spans from a shared topic, ownership of sessions, and results to a topic.

Imports base, exporters, receivers, store.
"""
