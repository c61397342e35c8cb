"""Services for every part of the process: threads, child processes, memory, logs, and points at which tests make it
fail."""
