"""Published figures compared with those of this package."""
