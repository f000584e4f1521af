"""Edits: text that is there becomes other text. Only a canvas can do this: a part is noise again, the rest stays."""
