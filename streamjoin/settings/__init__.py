"""Settings as people write them: their types, what is said of each, and what is wrong with one."""
