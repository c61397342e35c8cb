"""Process services: threads, child processes, memory, logs and fail points for tests."""
