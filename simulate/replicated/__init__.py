"""State replication, the baselines of the ring: ATR and CTR (PSP, sections 7 and 8.1), message by message."""
