#!/usr/bin/env python3
"""Runs the commands of a README and compares what they print with what it says.

    readme_run.py FILE

Blocks between ```console lines: a line `$ command` is run by sh in a copy of the file's folder, the
lines up to the next command are its standard output; `...` stands for any number of lines. Prints one
line a command and ends with 1 when one differs or there is none."""
import os
import re
import shutil
import subprocess
import sys
import tempfile


def commands(text):
    for block in re.findall(r"^```console\n(.*?)^```", text, re.M | re.S):
        for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
            command, _, want = part.partition("\n")
            yield command, want.rstrip("\n")


def matches(want, got):
    pattern = "".join(r"(?:.*\n)*" if line == "..." else re.escape(line) + "\n" for line in want.splitlines())
    return re.fullmatch(pattern, got) is not None


def main():
    path = os.path.abspath(sys.argv[1])
    failed = n = 0
    with tempfile.TemporaryDirectory() as folder, open(path, encoding="utf-8") as f:
        work = shutil.copytree(os.path.dirname(path), os.path.join(folder, "work"))
        for command, want in commands(f.read()):
            done = subprocess.run(["sh", "-c", command], cwd=work, text=True, capture_output=True, check=False)
            ok = done.returncode == 0 and not done.stderr and matches(want, done.stdout)
            print("ok" if ok else "DIFFERS", command)
            if not ok:
                print(done.stdout + done.stderr + f"status {done.returncode}")
            failed += not ok
            n += 1
    sys.exit(failed != 0 or n == 0)


main()
