"""From C text to a `LoopNest`: preprocessor, syntax tree, names, loops, statements, shapes of arrays."""
