"""Features and logits of a model, stored once per image."""
