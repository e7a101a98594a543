"""Compiler flags of both operators: they share the passes that the compiler has to vectorise."""

FLAGS = (
    "-O3",
    # With these, a choice between two values becomes a select, as vector instructions need it. Neither flag changes a
    # result. -ffast-math is not used: at the link it would turn denormal numbers off for the whole process.
    "-fno-math-errno",
    "-fno-trapping-math",
    # at::parallel_for is silently serial without it. The library is torch's own, which is loaded already.
    "-fopenmp",
)
