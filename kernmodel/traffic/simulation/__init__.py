"""Traffic by exact simulation of the caches: the nest as a program, its arrays placed, in the steady state."""
