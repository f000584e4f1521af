"""What a fill does to the syntax of the file around it: problems that it adds, where it should end, repeated text.
Nothing here raises on text, however broken. None means unknown (no grammar, out of time)."""
