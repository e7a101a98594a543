"""What is judged and where: selection, isolation in a process of its own, the environment, `verify()`."""
