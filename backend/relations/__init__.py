"""Relations: what may be registered, and how one is looked at."""
