"""The public face: the questions of the command line as functions, which `kernmodel` itself exports (docs/api.md).

Each returns a `result.Result`: the values that the reports print, with `text()`, `json()` and, where there is a
picture, `plot(path)`. The command line calls the same functions. Modules here are light: what a question needs is
imported when it is asked.
"""
