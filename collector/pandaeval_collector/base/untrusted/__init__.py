"""Text that others wrote: secrets in it, characters that a terminal would obey, messages of providers that failed."""
