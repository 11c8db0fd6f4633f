"""A user's model: its source, its head and its classes."""
