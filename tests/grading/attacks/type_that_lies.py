# attacks: rotation_table
# tries: an object that says it is a list, to isinstance and by its class
class Meta(type):
    def __instancecheck__(cls, _instance):
        return True

    def __eq__(cls, _other):
        return True

    def __hash__(cls):
        return hash(list)


class Table(metaclass=Meta):
    __class__ = list


def rotation_table(size):
    return Table()
