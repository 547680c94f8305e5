"""From a `LoopNest` back to C text: for the compiler, with blocked loops, with other default sizes."""
