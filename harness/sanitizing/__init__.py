"""The kernels under compute-sanitizer."""
