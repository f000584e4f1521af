"""llama.cpp with the same file, in an environment and a process of its own, to compare with."""
