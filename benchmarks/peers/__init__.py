"""ringlab beside other libraries of ring attention: same problem, same machine, turn by turn."""
