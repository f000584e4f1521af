"""Low-rank adapters as files: what was learnt of one folder, beside the weights that it was learnt with."""
