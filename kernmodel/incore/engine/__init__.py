"""The engine: blocks joined of what their instructions do, the bounds of each part of the core, and the simulation."""
