"""Learns problem scores from labels: gathers the runs that have one, fits a model for each agent, keeps it in a file."""
