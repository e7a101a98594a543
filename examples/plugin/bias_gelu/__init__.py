"""gelu(input + bias) in one: its contract and two backends."""
