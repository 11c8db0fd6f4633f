"""Datasets: their classes, their layouts on disk, and how to fetch them."""
