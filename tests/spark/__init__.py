"""StreamJoin on a real local Spark: exact, through crashes, live and from Kafka."""
