"""Learns problem scores from labels: gathers runs that have one, fits a model for each agent, keeps it in a file."""
