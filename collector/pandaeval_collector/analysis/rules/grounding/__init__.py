"""Checks whether specific values in answers occur in the agent's evidence: no model, any language."""
