"""The filter of system calls, for machines that no test runs on too: its numbers, and what its program decides."""

from __future__ import annotations

import errno
import re
import struct

import pytest

from nexus.extract.child import seccomp_filter
from nexus.extract.child.seccomp_calls import ALLOWED, GUARDED, REFUSED, SELF, UNKNOWN, Numbers

#: 64-bit ARM uses the kernel's generic table. These lines are from include/uapi/asm-generic/unistd.h of Linux 6.1:
#: a number never changes once it is given out.
GENERIC = """
17 getcwd, 19 eventfd2, 20 epoll_create1, 23 dup, 24 dup3, 25 fcntl, 26 inotify_init1, 29 ioctl, 32 flock,
34 mkdirat, 35 unlinkat, 36 symlinkat, 37 linkat, 38 renameat, 43 statfs, 44 fstatfs, 45 truncate, 46
ftruncate, 48 faccessat, 49 chdir, 52 fchmod, 53 fchmodat, 56 openat, 57 close, 59 pipe2, 61 getdents64, 62
lseek, 63 read, 64 write, 65 readv, 66 writev, 67 pread64, 72 pselect6, 73 ppoll, 78 readlinkat, 79
newfstatat, 80 fstat, 82 fsync, 88 utimensat, 93 exit, 94 exit_group, 98 futex, 99 set_robust_list, 101
nanosleep, 103 setitimer, 113 clock_gettime, 114 clock_getres, 115 clock_nanosleep, 119 sched_setscheduler,
122 sched_setaffinity, 123 sched_getaffinity, 124 sched_yield, 128 restart_syscall, 129 kill, 130 tkill, 131
tgkill, 132 sigaltstack, 134 rt_sigaction, 135 rt_sigprocmask, 139 rt_sigreturn, 140 setpriority, 148
getresuid, 150 getresgid, 153 times, 158 getgroups, 160 uname, 163 getrlimit, 165 getrusage, 166 umask, 167
prctl, 168 getcpu, 169 gettimeofday, 172 getpid, 173 getppid, 174 getuid, 175 geteuid, 176 getgid, 177
getegid, 178 gettid, 179 sysinfo, 186 msgget, 190 semget, 194 shmget, 198 socket, 199 socketpair, 200 bind,
201 listen, 202 accept, 203 connect, 204 getsockname, 206 sendto, 207 recvfrom, 209 getsockopt, 211 sendmsg,
212 recvmsg, 214 brk, 215 munmap, 216 mremap, 220 clone, 221 execve, 222 mmap, 223 fadvise64, 226 mprotect,
228 mlock, 233 madvise, 235 mbind, 236 get_mempolicy, 237 set_mempolicy, 242 accept4, 261 prlimit64, 276
renameat2, 278 getrandom, 279 memfd_create, 281 execveat, 283 membarrier, 291 statx, 293 rseq, 435 clone3,
437 openat2, 439 faccessat2
"""
#: From include/uapi/linux/elf-em.h and audit.h: the machine, with the bits for 64 bits and little-endian.
EM_X86_64, EM_AARCH64, IS_64_BIT, IS_LITTLE_ENDIAN = 62, 183, 0x80000000, 0x40000000

KILL, ALLOW = 0x80000000, 0x7FFF0000
PID = 4242
COLUMNS = {"x86_64": 0, "aarch64": 1}
PLAIN: dict[str, tuple[Numbers, int]] = {
    **{name: (numbers, ALLOW) for name, numbers in ALLOWED.items()},
    **{name: (numbers, 0x50000 | errno.EPERM) for name, numbers in REFUSED.items()},
    **{name: (numbers, 0x50000 | errno.ENOSYS) for name, numbers in UNKNOWN.items()},
}


def decide(machine: str, number: int, *arguments: int, on: int | None = None) -> int:
    """Run the program of a machine on a call, as seccomp(2) and classic BPF say."""
    program = seccomp_filter.build_filter(machine)
    assert program is not None
    steps = list(struct.iter_unpack("=HBBI", seccomp_filter.for_process(program, PID)))
    asked = seccomp_filter.MACHINES[machine] if on is None else on
    data = struct.pack("=IIQ6Q", number, asked, 0, *arguments, *[0] * (6 - len(arguments)))
    at = loaded = 0
    while True:
        code, yes, no, value = steps[at]
        at += 1
        match code:
            case 0x20:  # load
                (loaded,) = struct.unpack_from("=I", data, value)
            case 0x05:  # jump
                at += value
            case 0x06:  # return
                return int(value)
            case 0x15:  # if equal
                at += yes if loaded == value else no
            case 0x35:  # if at least
                at += yes if loaded >= value else no
            case 0x45:  # if any bit
                at += yes if loaded & value else no
            case _:
                raise AssertionError(f"step {code:#x} is not known")


def test_the_numbers_of_calls_on_64_bit_arm_are_the_kernels() -> None:
    generic = {name: int(number) for number, name in re.findall(r"(\d+)\s(\w+)", GENERIC)}
    listed = {**ALLOWED, **REFUSED, **UNKNOWN, **{name: one.numbers for name, one in GUARDED.items()}}
    assert {name: arm for name, (_, arm) in listed.items()} == {name: generic.get(name) for name in listed}


def test_machines_are_named_as_the_kernel_names_them() -> None:
    both = IS_64_BIT | IS_LITTLE_ENDIAN
    assert {"x86_64": EM_X86_64 | both, "aarch64": EM_AARCH64 | both} == seccomp_filter.MACHINES


@pytest.mark.parametrize("machine", COLUMNS)
def test_every_call_gets_the_verdict_of_its_list(machine: str) -> None:
    wanted = {
        number: verdict
        for numbers, verdict in PLAIN.values()
        if (number := numbers[COLUMNS[machine]]) is not None
    }
    assert {number: decide(machine, number) for number in wanted} == wanted
    guarded = {one.numbers[COLUMNS[machine]] for one in GUARDED.values()}
    others = set(range(600)) - set(wanted) - guarded
    assert {decide(machine, number) for number in others} == {KILL}


@pytest.mark.parametrize("machine", COLUMNS)
def test_guarded_calls_are_decided_by_their_arguments(machine: str) -> None:
    def guarded(name: str, *arguments: int) -> bool:
        number = GUARDED[name].numbers[COLUMNS[machine]]
        assert number is not None
        return decide(machine, number, *arguments) == ALLOW

    assert guarded("openat", 0, 0, 0o2000000)
    assert not guarded("openat", 0, 0, 0o1)
    assert guarded("mmap", 0, 4096, 0x3, 0x22)
    assert not guarded("mmap", 0, 4096, 0x7, 0x22)
    assert not guarded("mprotect", 0, 4096, 0x5)
    assert guarded("prlimit64", 0, 9)
    assert not guarded("prlimit64", 1, 9)
    assert guarded("kill", PID, 6)
    assert not any(guarded("kill", pid, 6) for pid in (0, 1, PID + 1, SELF & 0xFFFFFFFF))


@pytest.mark.parametrize("machine", COLUMNS)
def test_calls_of_another_machine_end_the_parser(machine: str) -> None:
    (other,) = set(seccomp_filter.MACHINES.values()) - {seccomp_filter.MACHINES[machine]}
    read = ALLOWED["read"][COLUMNS[machine]]
    assert read is not None
    assert decide(machine, read, on=other) == KILL
    assert decide(machine, read | 0x40000000) == KILL
