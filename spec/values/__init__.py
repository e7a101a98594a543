"""Values at which implementations have gone wrong, by operator: value families, and inputs with a closed form.

A contract, `spec/NAME.py`, has the formulas and the sizes of an operator; `spec/values/NAME.py` has its values.
"""
