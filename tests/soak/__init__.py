"""What takes hours: many seeds, many kills, a job for hours, in parts whose records add up; `python -m tests.soak`."""
