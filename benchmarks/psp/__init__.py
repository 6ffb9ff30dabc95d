"""PSP's ring beside ATR and CTR, simulated message by message (EDBT 2009, sections 7 and 8)."""
