"""Results in Apache Cassandra: `store.py` has the store, the others what it stands on."""
