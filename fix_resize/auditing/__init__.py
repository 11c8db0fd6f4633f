"""Audits of resized sets: aliasing, smoothness, and a verdict for a folder of images."""
