"""What a person with one, two or eight GPUs runs: ``python -m benchmarks.gpu``."""
