"""What the C code says: C in, a `LoopNest` with its accesses and operations out."""
