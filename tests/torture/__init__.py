"""What an attacker and a fast typist do, in numbers: `python -m tests.torture --seconds 60`.

One file a part; a part is a module with TARGETS. A target runs in a process of its own, so that a crash is a figure,
too.
"""
