"""How often the court is wrong, measured: false alarms over the controls of the zoo and detections over its faults.

`method` runs the study and draws its tables, `judges` are the rules that are compared, `plot` draws the figures.
"""
