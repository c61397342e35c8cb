"""Kafka: spans from a shared topic, ownership of sessions among collectors, and results to a topic.

Imports base, exporters, receivers, store.
"""
