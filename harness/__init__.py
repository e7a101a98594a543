"""The court: finds implementations, judges them by the law in `spec`, and writes down what it saw.

from harness import verify
verify(my_function, operator="lltm")
"""

from harness.verification import verify

__all__ = ["verify"]
