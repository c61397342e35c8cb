"""What any part of the process uses: threads, child processes, memory, logs, and points at which tests make it fail."""
