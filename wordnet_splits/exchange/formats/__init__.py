"""The formats of other projects, one file each."""
