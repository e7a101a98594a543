"""What backends in Python share: argument checks that no contract's symbols can state, and torch.func."""
