"""Operators side by side over one input: measured figures, the papers' predictions, a table and a picture of both."""
