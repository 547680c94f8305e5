"""How the core executes a loop: an `AssemblyLoop` in, an `InCore` answer out."""
