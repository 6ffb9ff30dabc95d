"""Intake: from raw records to blocks of the rows that can join."""
