"""Runs one server for exactly as long as the process that asked for it lives.

    python -I -S run_while_parent_lives.py PARENT SIGNAL FOLDER USER COMMAND...

Prints the server's pid, then waits until it and its own children are gone, and exits with its code.
When PARENT dies first, however it dies, the server gets SIGNAL and its FOLDER is removed.

A process in between, because the kernel's own way (PR_SET_PDEATHSIG) ends the server with the thread
that started it, and fault tests do start servers from threads.
"""

import os
import pwd
import shutil
import signal
import subprocess
import sys
import threading
import time
from typing import Any

#: How soon the server follows its parent; also how rarely a benchmark is disturbed.
GLANCE = 0.2
#: How long the server may take to obey, before it is killed.
PATIENCE = 10.0


def main() -> int:
    parent, ending, folder, user, *command = sys.argv[1:]
    # Only the parent's death and the server's own end count; a stray SIGTERM does not.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    # Inherited by every child of the server and never written to: it closes with the last of them.
    closing, held = os.pipe()
    server = subprocess.Popen(
        command, cwd=folder, stdin=subprocess.DEVNULL, stdout=2, pass_fds=[held], **identity(user)
    )
    os.close(held)
    os.write(1, b"%d\n" % server.pid)
    watcher = threading.Thread(target=watch, args=(int(parent), server, int(ending)), daemon=True)
    watcher.start()
    code = server.wait()
    os.read(closing, 1)
    if os.getppid() != int(parent):
        shutil.rmtree(folder, ignore_errors=True)
    return code if code >= 0 else 128 - code


def identity(user: str) -> dict[str, Any]:
    """Popen's arguments to run a command as that user, without our groups; none for ""."""
    return {"user": user, "group": pwd.getpwnam(user).pw_gid, "extra_groups": []} if user else {}


def watch(parent: int, server: subprocess.Popen[bytes], ending: int) -> None:
    while os.getppid() == parent:
        time.sleep(GLANCE)
    server.send_signal(ending)
    time.sleep(PATIENCE)
    server.kill()


if __name__ == "__main__":
    sys.exit(main())
