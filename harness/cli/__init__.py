"""`python -m harness`: one file a command; `main` finds them."""
