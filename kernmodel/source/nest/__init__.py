"""What follows from a `LoopNest`: affine forms, counts, index ranges, strides, dependences, blocked nests."""
