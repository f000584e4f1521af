"""Packages that are never trained on: what holes, edits and tuning are measured on."""
