"""Low-rank adapters: what tuning learnt of one folder, kept beside the model's own weights."""
