"""One prediction from end to end: what is asked, the stages from a point to its answer, and the answer."""
