"""What backends share in Python: argument checks that the symbols of a contract cannot state, and torch.func."""
