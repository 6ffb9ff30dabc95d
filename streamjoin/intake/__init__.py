"""Intake: from raw records to routed blocks."""
