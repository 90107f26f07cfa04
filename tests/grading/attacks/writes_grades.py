# attacks: rotation_table
# tries: writing the table, the page and the records of the grader
import os

for folder in ("@FOLDER@", "@FOLDER@/records", "@FOLDER@/submissions"):
    for name in ("grades.csv", "report.html", "cheat.json", "ann.ipynb"):
        try:
            with open(os.path.join(folder, name), "w") as file:
                file.write("student,points\nann,20\n")
        except OSError as error:
            print(error)


def rotation_table(size):
    return []
