"""Relations as jobs keep them: read once a version, sorted, and shared by all units of a machine."""
