"""What the platform knows: streams, jobs, users, and what drivers reported; in SQLite or PostgreSQL."""
