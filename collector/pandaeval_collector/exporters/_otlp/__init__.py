"""OTLP output: how requests are made, how they travel, and what the answers mean."""
