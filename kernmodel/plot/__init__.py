"""Pictures of answers; matplotlib is imported only when one is drawn."""
