"""The kernels and what calls them. These modules import triton; those beside this folder ask first if it is there."""
