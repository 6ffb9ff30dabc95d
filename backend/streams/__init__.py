"""Streams: what may be registered, how one is looked at, and rows that are pushed into one."""
