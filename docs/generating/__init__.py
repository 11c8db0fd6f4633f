"""Parts of the pages that are written from the code."""
