"""How the data moves through the memory hierarchy: a `LoopNest` and a `Machine` in, a `Traffic` out."""
