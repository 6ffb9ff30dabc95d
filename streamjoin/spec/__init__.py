"""What people ask for: the join file, and the bound job that becomes of it."""
