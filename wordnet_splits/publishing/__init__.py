"""What is published of a benchmark: its card, Croissant metadata, citations, and the files of a release."""
