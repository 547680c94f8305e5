"""Questions over the stages and models: one prediction end to end, and many of them."""
