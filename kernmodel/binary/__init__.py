"""Functions of compiled programs: their basic blocks, how often these run, and how long the function takes."""
