"""The implementations: a folder for each backend, with a file for each operator. `harness.discovery` finds them."""
