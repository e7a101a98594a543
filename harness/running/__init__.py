"""What is judged and where: the selection, isolation in a separate process, the environment, `verify()`."""
