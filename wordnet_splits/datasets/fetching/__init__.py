"""Fetch a dataset: its publisher's files or the Hub's copy, resumed, checked and unpacked."""
