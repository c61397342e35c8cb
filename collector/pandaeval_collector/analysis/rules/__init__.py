"""Rules over a trace without a model: endings, loops and failed calls."""
