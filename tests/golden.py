#!/usr/bin/env python3
"""Golden cases: one file each, `command` line, input, a line `---`, the expected output.

    golden.py DIR [--update]

The first line of a case starts with `$ ` and is run by sh with the case's folder as the working
directory; `ipu-stack` is the built command. The lines up to `---` are its standard input. What
follows is its standard output, its standard error after a line `stderr:`, if any, and `exit: N` when N is not 0.
--update rewrites the expected part; the difference is for review. Prints TAP."""
import os
import subprocess
import sys


def run_case(path, env):
    with open(path, encoding="utf-8") as f:
        text = f.read()
    head, sep, want = text.partition("\n---\n")
    if not sep:
        head, sep, want = text.rstrip("\n"), "\n---\n", ""
        if head.endswith("\n---"):
            head = head[:-4]
    command, _, stdin = head.partition("\n")
    if not command.startswith("$ "):
        return text, text, "no command line"
    done = subprocess.run(["sh", "-c", command[2:]], input=stdin + "\n" if stdin else "", text=True,
                          capture_output=True, env=env, cwd=os.path.dirname(path), timeout=300,
                          check=False)
    got = done.stdout
    if done.stderr:
        got += "stderr:\n" + done.stderr
    if done.returncode != 0:
        got += f"exit: {done.returncode}\n"
    return text, head + sep + got, None


def main():
    folder, update = os.path.abspath(sys.argv[1]), "--update" in sys.argv
    env = dict(os.environ)
    env["PATH"] = os.path.dirname(env["IPU_STACK"]) + ":" + env["PATH"]
    env["LC_ALL"] = "C"
    cases = sorted(n for n in os.listdir(folder) if n.endswith(".case"))
    print(f"1..{len(cases)}")
    failed = 0
    for i, name in enumerate(cases, 1):
        path = os.path.join(folder, name)
        text, got, problem = run_case(path, env)
        if update and not problem and got != text:
            with open(path, "w", encoding="utf-8") as f:
                f.write(got)
            text = got
        ok = not problem and got == text
        failed += not ok
        print(f"{'ok' if ok else 'not ok'} {i} - {name}")
        if not ok:
            print(f"# {problem or 'output differs'}; got:")
            for line in got.splitlines():
                print("#   " + line)
    sys.exit(failed != 0)


main()
