"""What models need of torch: weights from files, transforms, keys, and the processes of ``torchrun``."""
