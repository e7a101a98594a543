"""gelu(input + bias) as one operator: its contract and two backends."""
