"""What it means: analytic models, one file a model, pure functions of `Traffic`, `InCore` and `Machine`."""
