"""Rewriting a selection by instruction: messages to the model, drafts from the old text, checks of the answer."""
