"""What is published beside what this package computes."""
