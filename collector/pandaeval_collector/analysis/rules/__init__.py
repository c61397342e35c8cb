"""Rules that read a trace without a model: how it ended, where it went round in circles, which calls failed."""
