# attacks: rotation_table
# tries: code that claims to be torch's, so that it may search the memory
import torch

text = "import gc\nfound = gc.get_objects()\n"
names = {}
exec(compile(text, torch.__file__, "exec"), names)


def rotation_table(size):
    return [[(rank - step) % size for rank in range(size)] for step in range(size)]
