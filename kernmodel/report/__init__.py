"""Results for people (text) and programs (JSON)."""
