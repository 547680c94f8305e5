"""Cache blocking: which loops to block, by how much, for which cache, and what it buys."""
