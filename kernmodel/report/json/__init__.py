"""Answers as JSON documents: a module a schema; docs/json.md describes them."""
