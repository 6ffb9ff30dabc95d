"""BiStream's evaluation, figures 6 to 19 and table 4: the engine's own units, counted and timed one by one."""
