# attacks: rotation_table
# tries: asking the exercise itself what is right
def rotation_table(size):
    from ringlab.grade.exercises.lesson_03 import rotation_table as exercise

    return exercise._table(size, exercise._owner)
