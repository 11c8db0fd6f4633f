"""Negative words of zero-shot detectors: mining, and an audit of published lists."""
