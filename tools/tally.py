#!/usr/bin/env python3
"""Adds up meson's JUnit logs (one testcase per TAP line) and prints `N passed, N failed, N skipped`.

    tally.py LOG.junit.xml [LOG.junit.xml ...]

A program that died or ran into its time limit counts as one failure beside the cases that it reported. Names what failed
or was skipped. Exit status 1 when anything failed or nothing ran."""
import sys
import xml.etree.ElementTree as ET


def main():
    passed = failed = skipped = 0
    for path in sys.argv[1:]:
        for suite in ET.parse(path).getroot().iter("testsuite"):
            bad_here = 0
            for case in suite.iter("testcase"):
                name = f"{suite.get('name')}: {case.get('name')}"
                if case.find("failure") is not None or case.find("error") is not None:
                    failed += 1
                    bad_here += 1
                    print("FAILED", name)
                elif case.find("skipped") is not None:
                    skipped += 1
                    print("skipped", name)
                else:
                    passed += 1
            declared = int(suite.get("failures", 0)) + int(suite.get("errors", 0))
            if declared > bad_here:
                failed += declared - bad_here
                print("FAILED", suite.get("name"), "(the program itself)")
    tail = f", {skipped} skipped" if skipped else ""
    print(f"{passed} passed, {failed} failed{tail}")
    sys.exit(failed != 0 or passed == 0)


main()
