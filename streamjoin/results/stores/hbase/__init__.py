"""Results in HBase: `store.py` has the store, the others what it stands on."""
