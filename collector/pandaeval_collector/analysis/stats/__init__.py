"""Formulas: pure functions of numbers and words, thread-safe."""
