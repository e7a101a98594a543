"""A kernel and its rivals at every size of a grid, on a GPU: where is it slower than the best of them?

    python -m tools.sweep layer_norm -o results/nvidia-h200/sweep-layer_norm.json      # measures, on a GPU
    python -m tools.sweep layer_norm --point 1x65536 --point 64x1024                   # these points alone
    python -m tools.sweep --draw results/*/sweep-*.json                                # draws docs/performance.md

Rivals are PyTorch's native operator, where there is one, and the reference under torch.compile, compiled anew for each
size. All are timed in CUDA graphs, round by round, in an order that is drawn again.
"""
