"""How published measurements and models become instruction tables; used to build the tables, never to look up in
them."""
