"""Compile and load what backends declare: the host compiler, nvcc, hipcc."""
