"""The Hugging Face Hub as a client: addresses, requests, repositories."""
