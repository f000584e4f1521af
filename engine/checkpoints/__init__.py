"""Model directories: which there are, what they are, and how their weights get onto a device."""
