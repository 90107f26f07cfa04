# attacks: rotation_table
# tries: more memory, more processes and more files than it was given
import resource

for limit in (resource.RLIMIT_AS, resource.RLIMIT_CPU, resource.RLIMIT_FSIZE):
    resource.setrlimit(limit, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


def rotation_table(size):
    blocks = [bytearray(1 << 30) for _ in range(64)]
    return [[(rank - step) % size for rank in range(size)] for step in range(len(blocks) and size)]
