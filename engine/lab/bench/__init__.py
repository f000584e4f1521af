"""How fast a model runs on a machine, beside what bounds it and what others do with the same weights."""
