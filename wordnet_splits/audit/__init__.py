"""Published lists of classes against the classes that a model knows."""
