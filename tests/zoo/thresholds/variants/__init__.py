"""The variants of each class of faults, one file for a class. Templates are in `templates/CLASS/VARIANT.py.jinja`."""
