"""What runs beside foreign code: the runner, which calls an implementation for the judge. Imports torch alone."""
