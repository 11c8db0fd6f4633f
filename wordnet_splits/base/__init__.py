"""Foundation of the other packages: errors, files, untrusted input, progress, workers, tables of text."""
