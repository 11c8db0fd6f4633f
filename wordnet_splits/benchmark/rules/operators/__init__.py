"""Operators of rules; every module of this package is imported and registers its own."""
