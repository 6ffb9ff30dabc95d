"""The ring of sliced joins (PSP, EDBT 2009), message by message, with and without interleaved processing."""
