"""Judge a trace with a model: select the record, build the prompt, validate the reply.

Imports analysis, base.
"""
