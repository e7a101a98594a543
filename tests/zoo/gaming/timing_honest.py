"""No attack: the function of `python-autograd`, so that it is timed beside itself."""

from backends.python_autograd.lltm import lltm as honest

__all__ = ["honest"]
