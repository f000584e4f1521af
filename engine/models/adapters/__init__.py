"""Low-rank adapters: what tuning taught a model about one folder, kept beside the model's own weights."""
