"""Jobs: what they may be, how they change, and the join file that a driver runs."""
