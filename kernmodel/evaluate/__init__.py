"""How good the predictions are: against measurements and against other models, with the statistics of the field."""
