"""From results to sinks: log events and spans in an outbox, metrics from a table, a cursor for each exporter."""
