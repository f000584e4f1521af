"""Pretrained coders that read from left to right, from the files that people have."""
