"""What a fill does to the syntax of the file around it: problems it adds, where it should end, what it doubles.

Nothing here raises on text, however broken; what can't be told (unknown language, out of time) is None.
"""
