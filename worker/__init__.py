"""Celery tasks, the drivers they start, and the reconciler that compares what is wanted with what is seen."""
