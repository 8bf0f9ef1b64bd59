#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts test results for ./test, and prints what failed with all that it said.

  tally.py meson BUILD LOG.json               a log of `meson test`, one program per line
  tally.py tap NAME LOG STATUS SECONDS        the output of one script that prints TAP

The last line is "PASSED FAILED SKIPPED".
"""
import json
import re
import sys

RESULT = re.compile(r"^(not )?ok\b(.*)$", re.M)
NUMBER = re.compile(r"^\s*\d*\s*(- )?")
SKIP = re.compile(r"#\s*skip\b\s*(.*)", re.I)
WITHOUT = re.compile(r"^# skipped (without .*)$", re.M)  # tests/unit/skip.h
PLAN = re.compile(r"^1\.\.(\d+)", re.M)
NOTHING = re.compile(r"^1\.\.0\s*#\s*skip\b\s*(.*)$", re.I | re.M)
LAST = 60  # lines that are shown of a program that broke off


class Count:
    def __init__(self):
        self.passed = self.failed = self.skipped = self.results = 0

    def line(self, name, seconds, output, problem):
        verdict = "FAIL" if self.failed else "ok" if self.passed else "skip"
        skipped = f", {self.skipped} skipped" if self.skipped else ""
        print(f"  {verdict:4} {name}: {self.passed} passed, {self.failed} failed{skipped} ({seconds:.1f} s)")
        if problem:
            print(f"       {problem}")
        if self.failed:
            print(re.sub(r"^", "    | ", failures_of(output, problem), flags=re.M))


def failures_of(output, problem):
    """The lines "not ok" with what follows each; all of it where that does not tell."""
    lines, kept, failing = output.rstrip("\n").split("\n"), [], False
    for line in lines:
        result = RESULT.match(line)
        if result or PLAN.match(line):
            failing = bool(result and result[1] and not SKIP.search(line))
        if failing:
            kept.append(line)
    if problem or not kept:
        kept += ["", "the end of its output:"] + lines[-LAST:] if kept else lines[-LAST:]
    return "\n".join(kept)


def count_tap(output):
    """Counts the result lines, and prints the reason of each skip."""
    count, without = Count(), ""
    for line in output.split("\n"):
        result = RESULT.match(line)
        without = reason_of(WITHOUT, line) or without
        if not result:
            continue
        skip = SKIP.search(result[2])
        count.results += 1
        if skip:  # cmocka says "not ok 3 # SKIP name", and the reason in a line before
            count.skipped += 1
            say_skip(NUMBER.sub("", result[2][: skip.start()]).strip(), skip[1], without)
        elif result[1]:
            count.failed += 1
        else:
            count.passed += 1
        without = ""
    return count


def say_skip(*parts):
    print("  skip " + ": ".join(filter(None, parts)))


def reason_of(pattern, output):
    reason = pattern.search(output)
    return reason[1] if reason else ""


def problem_of(output, count, failed_otherwise, why):
    """What is wrong apart from the lines "not ok": a program that broke off must not pass."""
    plan = PLAN.search(output)
    if plan and int(plan[1]) != count.results:
        return f"{plan[1]} tests were planned, {count.results} reported"
    if failed_otherwise and not count.failed:
        return why
    return None


def tally_meson(build, path):
    total = Count()
    with open(path, encoding="utf-8") as log:
        for entry in map(json.loads, log):
            output = entry.get("stdout", "") + entry.get("stderr", "")
            result = entry["result"]
            name = entry["name"].split(" / ")[-1]
            count = count_tap(entry.get("stdout", ""))
            if not count.results:
                count.passed, count.skipped = int(result == "OK"), int(result == "SKIP")
                if count.skipped:
                    say_skip(name, reason_of(WITHOUT, output))
            problem = problem_of(output, count, result not in ("OK", "SKIP"), f"the program ended with {result}")
            count.failed += problem is not None
            count.line(f"{name} ({build})", entry["duration"], output, problem)
            add(total, count)
    return total


def tally_tap(name, path, status, seconds):
    with open(path, encoding="utf-8", errors="replace") as log:
        output = log.read()
    count = count_tap(output)
    if not count.results and NOTHING.search(output):
        count.skipped = 1
        say_skip(name, reason_of(NOTHING, output))
    why = "took too long and was stopped" if status in (124, 137) else f"ended with status {status}"
    problem = why if status in (124, 137) else problem_of(output, count, status != 0, why)
    if not problem and not PLAN.search(output):
        problem = "no plan (1..N) was printed"
    count.failed += problem is not None
    count.line(name, seconds, output, problem)
    return count


def add(total, count):
    total.passed += count.passed
    total.failed += count.failed
    total.skipped += count.skipped


def main(arguments):
    if arguments[0] == "meson":
        total = tally_meson(*arguments[1:])
    else:
        name, path, status, seconds = arguments[1:]
        total = tally_tap(name, path, int(status), float(seconds))
    print(total.passed, total.failed, total.skipped)


if __name__ == "__main__":
    main(sys.argv[1:])
