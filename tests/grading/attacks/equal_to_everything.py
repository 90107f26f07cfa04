# attacks: rotation_table
# tries: an object that is equal to everything
class Equal:
    def __eq__(self, _other):
        return True

    def __hash__(self):
        return 0

    def __len__(self):
        return 5

    def __iter__(self):
        return iter([self] * 5)


def rotation_table(size):
    return Equal()
