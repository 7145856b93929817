# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A small load on the MariaDB of a lab host, and the proof that no acknowledged row is lost.

Runs on the lab host as root, with the standard library and the server's own client only:

    mysql_load.py start ROWS_FILE     insert rows in the background until stopped
    mysql_load.py stop ROWS_FILE      end it, and say how many rows were acknowledged
    mysql_load.py check ROWS_FILE     compare the table with the acknowledged rows; exit 1 when one is missing
    mysql_load.py clean ROWS_FILE     drop the table and remove the files

Each row is a transaction of its own.  Its number goes to ROWS_FILE, synced, only after the server
said that it is committed; while the server restarts the load waits and goes on with a new client.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

DATABASE = "gpufleet_load"
CLIENT = ["mariadb", "--batch", "--skip-column-names", "--unbuffered", "--protocol=socket"]
PAUSE_S = 0.05
RETRY_S = 1.0


def ask(statement: str) -> str:
    """The answer to one statement, asked by a client of its own."""
    return subprocess.run([*CLIENT, "-e", statement], check=True, capture_output=True, text=True, timeout=120).stdout


def insert_until_stopped(rows_file: str) -> None:
    """Insert rows one by one; a number is noted once its row is committed."""
    number = 1 + max(acknowledged(rows_file), default=0)
    with open(rows_file, "a", encoding="ascii") as rows:
        while True:
            try:
                number = insert_with_one_client(number, rows.fileno())
            except (OSError, ValueError):
                # The server is restarting: whether this row was committed is not known, so it is not noted.
                number += 1
                time.sleep(RETRY_S)


def insert_with_one_client(number: int, rows: int) -> int:
    """Insert with one long-lived client until it ends; gives the number that was not acknowledged."""
    client = subprocess.Popen([*CLIENT, DATABASE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
    assert client.stdin and client.stdout
    try:
        while True:
            row = "INSERT INTO acknowledged (number, filler) VALUES (%d, REPEAT('x', 1000)); SELECT %d;\n"
            client.stdin.write(row % (number, number))
            client.stdin.flush()
            # The client ends at the first error, so an answer means that the insert before it was committed.
            if int(client.stdout.readline()) != number:
                raise ValueError("another answer than the row that was asked for")
            os.write(rows, b"%d\n" % number)
            os.fsync(rows)
            number += 1
            time.sleep(PAUSE_S)
    finally:
        client.kill()
        client.wait()


def acknowledged(rows_file: str) -> set[int]:
    """The numbers that were noted."""
    try:
        with open(rows_file, encoding="ascii") as rows:
            return {int(line) for line in rows if line.strip()}
    except FileNotFoundError:
        return set()


def start(rows_file: str) -> int:
    ask("CREATE DATABASE IF NOT EXISTS %s" % DATABASE)
    columns = "number INT PRIMARY KEY, filler TEXT NOT NULL"
    ask("CREATE TABLE IF NOT EXISTS %s.acknowledged (%s) ENGINE=InnoDB" % (DATABASE, columns))
    argv = [sys.executable, os.path.abspath(__file__), "insert", rows_file]
    with open(os.devnull, "r+b") as nowhere:
        load = subprocess.Popen(argv, stdin=nowhere, stdout=nowhere, stderr=nowhere, start_new_session=True)
    with open(rows_file + ".pid", "w", encoding="ascii") as pid:
        pid.write("%d\n" % load.pid)
    print("inserting into %s.acknowledged as process %d" % (DATABASE, load.pid))
    return 0


def stop(rows_file: str) -> int:
    with open(rows_file + ".pid", encoding="ascii") as pid:
        group = int(pid.read())
    try:
        os.killpg(group, signal.SIGTERM)
    except ProcessLookupError:
        print("the load had ended before it was stopped", file=sys.stderr)
        return 1
    os.unlink(rows_file + ".pid")
    print("%d rows were acknowledged" % len(acknowledged(rows_file)))
    return 0


def check(rows_file: str) -> int:
    noted = acknowledged(rows_file)
    there = {int(line) for line in ask("SELECT number FROM %s.acknowledged" % DATABASE).split()}
    missing = sorted(noted - there)
    print("%d rows acknowledged, %d in the table, %d missing" % (len(noted), len(there), len(missing)))
    if not noted:
        print("no row was ever acknowledged: the load did not run", file=sys.stderr)
        return 1
    if missing:
        print("missing: %s" % ", ".join(str(number) for number in missing[:20]), file=sys.stderr)
    return 1 if missing else 0


def clean(rows_file: str) -> int:
    ask("DROP DATABASE IF EXISTS %s" % DATABASE)
    for path in (rows_file, rows_file + ".pid"):
        if os.path.exists(path):
            os.unlink(path)
    return 0


def main() -> int:
    verbs = {"start": start, "stop": stop, "check": check, "clean": clean}
    if len(sys.argv) == 3 and sys.argv[1] == "insert":
        insert_until_stopped(sys.argv[2])
    if len(sys.argv) != 3 or sys.argv[1] not in verbs:
        print(__doc__, file=sys.stderr)
        return 2
    return verbs[sys.argv[1]](sys.argv[2])


if __name__ == "__main__":
    sys.exit(main())
