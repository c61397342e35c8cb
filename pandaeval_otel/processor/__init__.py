"""What runs in the application: span and log processor, context, and the thread that sends. Imports assembly, dialects,
wire, model and base."""
