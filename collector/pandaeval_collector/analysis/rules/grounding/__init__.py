"""Whether the specific values that an agent states stand in what it had: no model, any language."""
