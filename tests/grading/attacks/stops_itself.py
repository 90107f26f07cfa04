# attacks: rotation_table
# tries: stopping its own process, so that whoever waits for it waits for ever
import os
import signal


def rotation_table(size):
    os.kill(os.getpid(), signal.SIGSTOP)
    return []
