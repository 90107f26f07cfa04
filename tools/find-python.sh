#!/bin/sh
# Print the path of a Python that can make the environment, or say what is missing.
# usage: find-python.sh VENV PYTHON TORCH   (PYTHON and TORCH may be empty)
venv=$1 asked=$2 torch=$3

probe='
import importlib.util, sys
problem = ""
if not (3, 10) <= sys.version_info[:2] <= (3, 13):
    problem = "is Python %d.%d" % sys.version_info[:2]
elif any(importlib.util.find_spec(name) is None for name in ("venv", "ensurepip")):
    problem = "has no venv module (Debian and Ubuntu: apt install python3-venv)"
elif sys.argv[1] == "system" and importlib.util.find_spec("torch") is None:
    problem = "has no torch"
print(problem or "fits")
'

if [ -n "$asked" ]; then
    candidates=$asked
else
    # What is there and was made in the wanted way goes on to be used.
    candidates=""
    if [ -x "$venv/bin/python" ] &&
        grep -qs "\"torch\": \"$torch" "$venv/ringlab-setup.json"; then
        candidates="$venv/bin/python"
    fi
    candidates="$candidates python3 python3.13 python3.12 python3.11 python3.10 python"
fi

seen=""
for candidate in $candidates; do
    path=$(command -v "$candidate" 2>/dev/null) || { seen="$seen
  $candidate: not found"; continue; }
    answer=$("$path" -c "$probe" "$torch" 2>/dev/null) || answer="does not start"
    if [ "$answer" = "fits" ]; then
        echo "$path"
        exit 0
    fi
    seen="$seen
  $path $answer"
done

wanted="Python 3.10, 3.11, 3.12 or 3.13 with its venv module"
[ "$torch" = "system" ] && wanted="$wanted and torch installed"
echo "ringlab needs $wanted. Looked at:$seen
Install one, or name it: make PYTHON=/path/to/python3 ..." >&2
exit 1
