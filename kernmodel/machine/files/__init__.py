"""Machine files: what they may say, whether it fits together, and how they are written."""
