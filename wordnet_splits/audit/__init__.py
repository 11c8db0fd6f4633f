"""Published class lists compared with the ID classes of a model."""
