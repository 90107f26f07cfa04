"""What every public call over ranks needs: checks, refusals by name, the group, messages."""
