"""Traffic by layer conditions: which reuse fits into which cache, as formulas in the sizes and as numbers."""
