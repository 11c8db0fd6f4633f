"""What everything else stands on: errors, files, untrusted input, progress, workers, tables of text."""
