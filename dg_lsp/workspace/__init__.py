"""What the workspace holds beside the document: similar code, imported definitions, recent edits, other documents."""
