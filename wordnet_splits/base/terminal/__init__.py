"""Shared by the three command lines: options, output, and running a command."""
