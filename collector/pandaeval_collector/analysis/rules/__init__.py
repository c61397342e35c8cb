"""Rules over a trace, without a model: endings, loops, failed calls and fabricated values."""
