"""What runs inside the sandbox. It imports the standard library and modules of this package, nothing else."""
