# attacks: rotation_table
# tries: writing into the interpreter's memory with ctypes
import ctypes


def rotation_table(size):
    ctypes.pythonapi.PyEval_SetTrace(None, None)
    ctypes.memset(id(size), 0, 1)
    return [[(rank - step) % size for rank in range(size)] for step in range(size)]
