"""The system calls that a parser may make. Every other call ends it.

The list is what readers were seen to need (strace over a sample of documents), and what Python and its libraries are
known to do around that: take memory, read installed files, look at the clock, speak to the worker. A call that
libraries try and can do without is refused with an error, so that they carry on.
"""

from __future__ import annotations

import errno
import fcntl
from typing import NamedTuple

#: The numbers of a call on x86-64 and on 64-bit ARM, which lacks the older ones.
Numbers = tuple[int, int | None]

ALLOWED: dict[str, Numbers] = {
    # its socket, and installed files
    "read": (0, 63),
    "readv": (19, 65),
    "pread64": (17, 67),
    "write": (1, 64),
    "writev": (20, 66),
    "recvfrom": (45, 207),
    "sendto": (44, 206),
    "getsockname": (51, 204),
    "getsockopt": (55, 209),
    "lseek": (8, 62),
    "close": (3, 57),
    "dup": (32, 23),
    "dup2": (33, None),
    "dup3": (292, 24),
    "fstat": (5, 80),
    "stat": (4, None),
    "lstat": (6, None),
    "newfstatat": (262, 79),
    "statx": (332, 291),
    "statfs": (137, 43),
    "fstatfs": (138, 44),
    "access": (21, None),
    "faccessat": (269, 48),
    "faccessat2": (439, 439),
    "readlink": (89, None),
    "readlinkat": (267, 78),
    "getdents64": (217, 61),
    "getcwd": (79, 17),
    "fadvise64": (221, 223),
    "poll": (7, None),
    "ppoll": (271, 73),
    "select": (23, None),
    "pselect6": (270, 72),
    # memory
    "brk": (12, 214),
    "munmap": (11, 215),
    "mremap": (25, 216),
    "madvise": (28, 233),
    # its one thread, and its own signals
    "futex": (202, 98),
    "set_robust_list": (273, 99),
    "rseq": (334, 293),
    "sched_yield": (24, 124),
    "sched_getaffinity": (204, 123),
    "getcpu": (309, 168),
    "rt_sigaction": (13, 134),
    "rt_sigprocmask": (14, 135),
    "rt_sigreturn": (15, 139),
    "sigaltstack": (131, 132),
    "restart_syscall": (219, 128),
    "setitimer": (38, 103),
    "exit": (60, 93),
    "exit_group": (231, 94),
    # the time, and what it is
    "clock_gettime": (228, 113),
    "clock_getres": (229, 114),
    "clock_nanosleep": (230, 115),
    "nanosleep": (35, 101),
    "gettimeofday": (96, 169),
    "time": (201, None),
    "times": (100, 153),
    "getrusage": (98, 165),
    "getrlimit": (97, 163),
    "getrandom": (318, 278),
    "getpid": (39, 172),
    "gettid": (186, 178),
    "getppid": (110, 173),
    "getpgrp": (111, None),
    "getuid": (102, 174),
    "geteuid": (107, 175),
    "getgid": (104, 176),
    "getegid": (108, 177),
    "getresuid": (118, 148),
    "getresgid": (120, 150),
    "getgroups": (115, 158),
    "uname": (63, 160),
    "sysinfo": (99, 179),
}

#: Refused as if the right were missing.
REFUSED: dict[str, Numbers] = {
    "socket": (41, 198),
    "socketpair": (53, 199),
    "connect": (42, 203),
    "bind": (49, 200),
    "listen": (50, 201),
    "accept": (43, 202),
    "accept4": (288, 242),
    "sendmsg": (46, 211),
    "recvmsg": (47, 212),
    "fork": (57, None),
    "vfork": (58, None),
    "clone": (56, 220),
    "execve": (59, 221),
    "execveat": (322, 281),
    "tkill": (200, 130),
    "creat": (85, None),
    "mkdir": (83, None),
    "mkdirat": (258, 34),
    "rmdir": (84, None),
    "unlink": (87, None),
    "unlinkat": (263, 35),
    "rename": (82, None),
    "renameat": (264, 38),
    "renameat2": (316, 276),
    "link": (86, None),
    "linkat": (265, 37),
    "symlink": (88, None),
    "symlinkat": (266, 36),
    "chmod": (90, None),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "truncate": (76, 45),
    "ftruncate": (77, 46),
    "utimensat": (280, 88),
    "pipe": (22, None),
    "pipe2": (293, 59),
    "eventfd2": (290, 19),
    "epoll_create1": (291, 20),
    "memfd_create": (319, 279),
    "inotify_init1": (294, 26),
    "sched_setaffinity": (203, 122),
    "sched_setscheduler": (144, 119),
    "setpriority": (141, 140),
    "mlock": (149, 228),
    "umask": (95, 166),
    "chdir": (80, 49),
    "flock": (73, 32),
    "fsync": (74, 82),
    "shmget": (29, 194),
    "semget": (64, 190),
    "msgget": (68, 186),
}

#: Refused as if the kernel did not know them, so that libraries use the older call.
UNKNOWN: dict[str, Numbers] = {
    "clone3": (435, 435),
    "openat2": (437, 437),
    "membarrier": (324, 283),
    "get_mempolicy": (239, 236),
    "set_mempolicy": (238, 237),
    "mbind": (237, 235),
}


class OneOf(NamedTuple):
    """The argument must have one of these values."""

    argument: int
    values: tuple[int, ...]


class Without(NamedTuple):
    """The argument must have none of these bits."""

    argument: int
    bits: int


class Guarded(NamedTuple):
    """A call that is allowed if its arguments pass one of these lists of tests, and refused otherwise."""

    numbers: Numbers
    ways: tuple[tuple[OneOf | Without, ...], ...]
    error: int = errno.EPERM


#: Stands for the number of the process, which differs each time.
SELF = -1
#: To write, to read and write, to create, to empty, to append, and to make a file without a name.
_WRITING = 0o1 | 0o2 | 0o100 | 0o1000 | 0o2000 | 0o20000000
_PROT_WRITE, _PROT_EXEC, _MAP_ANONYMOUS = 0x2, 0x4, 0x20
#: Is it a terminal? Which size? Should reads wait, and the file be passed on?
_TCGETS, _TIOCGWINSZ, _FIONBIO, _FIOCLEX = 0x5401, 0x5413, 0x5421, 0x5451
_PR_SET_NAME, _PR_GET_NAME, _PR_GET_NO_NEW_PRIVS, _PR_SET_VMA = 15, 16, 39, 0x53564D41

GUARDED: dict[str, Guarded] = {
    "open": Guarded((2, None), ((Without(1, _WRITING),),), errno.EACCES),
    "openat": Guarded((257, 56), ((Without(2, _WRITING),),), errno.EACCES),
    # Code comes from installed files only, and can't be written.
    "mmap": Guarded(
        (9, 222),
        ((Without(2, _PROT_EXEC),), (Without(2, _PROT_WRITE), Without(3, _MAP_ANONYMOUS))),
    ),
    "mprotect": Guarded((10, 226), ((Without(2, _PROT_EXEC),),)),
    "ioctl": Guarded((16, 29), ((OneOf(1, (_TCGETS, _TIOCGWINSZ, _FIONBIO, _FIOCLEX)),),), errno.ENOTTY),
    "fcntl": Guarded(
        (72, 25),
        (
            (
                OneOf(
                    1,
                    (
                        fcntl.F_DUPFD,
                        fcntl.F_DUPFD_CLOEXEC,
                        fcntl.F_GETFD,
                        fcntl.F_SETFD,
                        fcntl.F_GETFL,
                        fcntl.F_SETFL,
                    ),
                ),
            ),
        ),
    ),
    "prctl": Guarded(
        (157, 167), ((OneOf(0, (_PR_SET_NAME, _PR_GET_NAME, _PR_GET_NO_NEW_PRIVS, _PR_SET_VMA)),),)
    ),
    # Its own limits, which it can't raise.
    "prlimit64": Guarded((302, 261), ((OneOf(0, (0,)),),)),
    "kill": Guarded((62, 129), ((OneOf(0, (SELF,)),),)),
    "tgkill": Guarded((234, 131), ((OneOf(0, (SELF,)),),)),
}
