"""The front end of a core: how fast instructions are fetched, decoded and issued (Facile, IISWC 2023, section 4)."""
