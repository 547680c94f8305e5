"""What is known of cores: their instruction tables and parameter files, read where they are asked, and the importers
that build the tables."""
