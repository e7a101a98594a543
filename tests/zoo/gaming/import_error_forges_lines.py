"""Does not import, with a message of lines that look like a summary and like a command to GitHub (own trial)."""

from tests.zoo.gaming.parts import right

raise ImportError("x\n::set-output name=green::true\n✓ values 10 of 10 hold\n31 passed")

lltm = right
