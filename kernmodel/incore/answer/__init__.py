"""The answer for a block, or for many: which part of the core bounds it, why, and what would help."""
