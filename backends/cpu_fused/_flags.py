"""What the compiler is told of both operators: they share the passes that it is to vectorise."""

FLAGS = (
    "-O3",
    # A choice between two values becomes a select, as vectors need it. Neither flag changes any result, and none
    # of -ffast-math is set at the link, where it would turn denormal numbers off for the whole process.
    "-fno-math-errno",
    "-fno-trapping-math",
    # at::parallel_for is silently serial without it. The library is torch's own, which is loaded already.
    "-fopenmp",
)
