"""How fast ringlab is beside one process: what is measured, how, and where the time goes."""
