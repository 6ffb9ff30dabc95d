"""What operators share that join all streams of a query at once: partial results, what they meet, and what is kept."""
