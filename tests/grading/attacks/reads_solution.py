# attacks: rotation_table
# tries: reading the solution notebook and running what it finds
import glob
import json

places = ["@SOLUTIONS@", *glob.glob("/**/solutions/*.ipynb", recursive=False)]
for place in places:
    try:
        with open(place) as file:
            notebook = json.load(file)
    except OSError as error:
        print(error)
        continue
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if "def rotation_table" in source:
            exec(source)
