"""The formulas: pure functions of numbers and words. No trace, no model, no embedder, no I/O; safe on any thread."""
