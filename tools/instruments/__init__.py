"""Time the same two backends by every instrument of this project, and ask whether the instruments agree.

    python -m tools.instruments -o results/cpu/instruments.json           # three minutes; a quiet machine
    python -m tools.instruments --device cuda -o results/nvidia-h200/instruments.json
    python -m tools.instruments --draw results/cpu/instruments.json       # its section of docs/performance.md

The instruments are `harness bench`, the pytest-benchmark session of tests/benchmarks, and the blocks of the gate's
workers. Times of two processes cannot be compared, so what has to agree is a ratio: the time of a reference over that
of a backend, as each instrument finds it within its own process or its own pairs. A launch starts each instrument once,
in an order that is drawn. The differences between two instruments are taken launch by launch, since what changes from
launch to launch on the machine meets both.

The gate's workers also time the backend with a tenth more calls in each block. The other two must disagree with that.
"""
