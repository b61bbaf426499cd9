#!/usr/bin/env python3
"""Limits of time for the programs that tests start, which do not depend on how busy the machine is.

    limited.py SECONDS [--silent SECONDS] COMMAND...       runs a command, and ends with its exit code, or with 124

    import limited
    limited.run(command, cwd=...)        instead of subprocess.run
    limited.start(command, cwd=...)      instead of subprocess.Popen

The seconds are those of a machine of its own. While a process of the command's tree wants a processor, time counts by the
share that the tree gets of what it asks for: a run that gets a tenth has ten times as long. (/proc/PID/task/*/schedstat:
time on a processor, and time that a thread was ready but waited for one.) While a process waits for the disk, no time
counts. While all sleep, all of it counts, unless processes come and go between two looks, as those of a shell script do, or
one is stopped, which another may continue: then it is divided by the machine's load.

A tree is ended when it has used up its seconds, or has written nothing, to no file, pipe or terminal, for `silent` seconds.
What then stands on standard error: whether it hung or was starved, the state and the stacks (gdb) of all its processes, and
the last lines of the files that they have open for writing. A ceiling on the clock's time, which grows with the machine's
load, ends what gets no processor at all.
"""
import ctypes, glob, os, re, shutil, signal, subprocess, sys, threading, time

SECONDS, SILENT = 300, 40  # of a run of the trainer on a tiny model, which takes 10 at most
EXPIRED = 124  # exit code, as timeout's
CEILING = 3  # the clock's time, in multiples of the limit times the load of a processor
INTERVAL = 2.0  # between two looks; a run that is shorter is not looked at
STACKS_OF_AT_MOST = 16  # processes


class Expired(AssertionError):
    """A command has been ended at its limit."""


def read(name):
    try:
        with open(name, errors="replace") as f:
            return f.read()
    except OSError:
        return ""


def load():
    """Processes and threads that want a processor, per processor."""
    running = re.search(r" (\d+)/", read("/proc/loadavg"))
    return max(1.0, (int(running.group(1)) if running else 1) / os.cpu_count())


def fields(pid):
    """/proc/PID/stat from the state on: state, parent, process group, session, ..."""
    return read(f"/proc/{pid}/stat").rpartition(")")[2].split()


def children(pid):
    return [int(child) for name in glob.glob(f"/proc/{pid}/task/*/children") for child in read(name).split()]


def command_of(pid):
    return read(f"/proc/{pid}/cmdline").replace("\0", " ").strip()


class Thread:
    """What one thread has got so far, in seconds."""
    def __init__(self, path=None):
        figures = [int(x) for x in read(f"{path}/schedstat").split()] if path else []
        self.got, self.delayed = (figures[0] / 1e9, figures[1] / 1e9) if len(figures) == 3 else (0.0, 0.0)
        self.state = (read(f"{path}/stat").rpartition(")")[2].split() or "?")[0] if path else "?"


class Tree:
    """A process and all that it has started, and what they have got of the machine.

    adopts: this program's other children belong to it too, which are orphans of the tree.
    """
    def __init__(self, leader, adopts=False):
        self.leader, self.adopts, self.begins = leader, adopts, {}
        self.threads, self.written, self.reaped = {}, {}, {}
        self.got = self.asked = 0.0

    def processes(self):
        """Also those whose parents have ended, if they have been seen before."""
        found, left = [], [self.leader] + list(self.begins) + (children(os.getpid()) if self.adopts else [])
        while left:
            pid = left.pop()
            if pid in found:
                continue
            stat = fields(pid)
            if self.adopts and stat[:2] == ["Z", str(os.getpid())] and pid != self.leader:
                os.waitpid(pid, os.WNOHANG)
            if len(stat) < 20 or stat[0] in "ZX" or self.begins.setdefault(pid, stat[19]) != stat[19]:
                continue
            found.append(pid)
            left += children(pid)
        return found

    def look(self, passed):
        """The seconds that count of those that have passed, and whether anything was written."""
        threads, written, reaped = {}, {}, {}
        for pid in self.processes():
            for path in glob.glob(f"/proc/{pid}/task/[0-9]*"):
                threads[path] = Thread(path)
            found = re.search(r"^wchar: (\d+)", read(f"/proc/{pid}/io"), re.M)
            if found:
                written[pid] = int(found.group(1))
            reaped[pid] = fields(pid)[13:15]
        return self.count(passed, threads, written, reaped)

    def count(self, passed, threads, written, reaped):
        """threads: Thread by path; written: bytes by process; reaped: time of children that have ended, by process."""
        got = asked = 0.0
        on_disk = stopped = False
        for path, now in threads.items():
            before = self.threads.get(path, Thread())
            ran, delayed = now.got - before.got, now.delayed - before.delayed
            if now.state == "R" and ran + delayed == 0:
                delayed = passed  # is counted when it gets its turn
            got, asked, on_disk = got + ran, asked + ran + delayed, on_disk or now.state == before.state == "D"
            stopped = stopped or now.state in "Tt"
        wrote = any(count > self.written.get(pid, 0) for pid, count in written.items())
        changed = reaped != self.reaped
        self.threads, self.written, self.reaped = threads, written, reaped
        self.got, self.asked = self.got + got, self.asked + asked
        if on_disk:
            return 0.0, wrote
        wanted = min(passed, asked)  # the part of the time in which a processor was wanted, at most
        return (passed - wanted) / (load() if changed or stopped else 1) + (wanted * got /
                                                                            asked if asked > 0 else 0.0), wrote

    @property
    def share(self):
        return self.got / self.asked if self.asked > 0 else 1.0

    def kill(self):
        """Until none is left, also of those that are started meanwhile."""
        for _ in range(200):
            left = self.processes()
            if not left:
                return
            for pid in left:
                send(pid, signal.SIGKILL)
            time.sleep(0.02)

    def describe(self):
        """States, stacks and last lines."""
        processes = sorted(self.processes())
        for pid in processes:
            threads = [(path, Thread(path)) for path in sorted(glob.glob(f"/proc/{pid}/task/[0-9]*"))]
            waits = {f"{t.state} {read(path + '/wchan') or '?'}" for path, t in threads}
            yield (
                f"process {pid}: {command_of(pid)[:150]}\n  {len(threads)} threads ({', '.join(sorted(waits))}), "
                f"{sum(t.got for _, t in threads):.2f} s on a processor, {sum(t.delayed for _, t in threads):.2f} s ready without one"
            )
        yield from (stacks(pid) for pid in processes[-STACKS_OF_AT_MOST:])
        for name in sorted({name for pid in processes for name in open_for_writing(pid)}):
            lines = read(name).splitlines()[-5:]
            yield f"the end of {name}:\n" + "\n".join(f"  {line[:300]}" for line in lines)


def stacks(pid):
    if not shutil.which("gdb"):
        return f"no stacks of process {pid}: gdb is not installed"
    command = [
        "gdb", "-nx", "-batch", "-p",
        str(pid), "-ex", "set print frame-arguments none", "-ex", "thread apply all backtrace 30"
    ]
    try:
        said = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
                              timeout=60 * min(10.0, load()))
    except subprocess.TimeoutExpired:
        return f"no stacks of process {pid}: gdb does not end"
    kept = [line[:200] for line in said.stdout.splitlines() if re.match(r"#\d+|Thread ", line)]
    return f"stacks of process {pid}:\n" + "\n".join(f"  {line}" for line in kept or said.stderr.splitlines()[-3:])


def open_for_writing(pid):
    for link in glob.glob(f"/proc/{pid}/fd/*"):
        try:
            name = os.readlink(link)
        except OSError:
            continue
        flags = re.search(r"^flags:\s*(\d+)", read(link.replace("/fd/", "/fdinfo/")), re.M)
        if flags and int(flags.group(1), 8) & 3 and re.search(r"\.(txt|jsonl|log)$", name) and os.path.isfile(name):
            yield name


def send(pid, number):
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        pass


class Watch:
    """Ends a process and all that it has started at its limit. `verdict`: then, what has been said."""
    def __init__(self, tree, name, seconds=SECONDS, silent=SILENT):
        self.tree, self.name, self.seconds, self.silent, self.verdict = tree, name, seconds, silent, None
        self.counted = self.quiet = 0.0
        self.most = 1.0  # load
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.watch, daemon=True)

    def watch(self):
        begin = last = time.monotonic()
        interval = min(INTERVAL, self.seconds / 4, self.silent / 4)
        while not self.ended.wait(interval):
            now = time.monotonic()
            what = self.judge(*self.tree.look(now - last), now - begin, load())
            last = now
            if what:
                self.end(
                    f"{what} of its own time ({now - begin:.0f} s of the clock, {100 * self.tree.share:.0f}% of the processor "
                    f"time that it asked for; load of a processor: {load():.1f}, at most {self.most:.1f})")
                return

    def judge(self, counts, wrote, clock, load):
        """After a look: why the tree is to be ended, if so."""
        self.counted, self.quiet, self.most = self.counted + counts, 0.0 if wrote else self.quiet + counts, max(
            self.most, load)
        if self.quiet > self.silent:
            return f"hung: wrote nothing for {self.quiet:.0f} s"
        if self.counted > self.seconds:
            return f"too slow: has not ended after {self.counted:.0f} s"
        if clock > CEILING * self.seconds * self.most:
            return f"starved: gets hardly a processor, {self.counted:.0f} s"
        return None

    def end(self, what):
        self.verdict = f"{self.name} {what}"
        try:
            sys.stderr.write(f"\n{self.verdict}\n")
            for part in self.tree.describe():
                sys.stderr.write(f"{part}\n")
            sys.stderr.flush()
        finally:
            self.tree.kill()

    def stop(self):
        """Not while the verdict is being written."""
        self.ended.set()
        self.thread.join()


class Process(subprocess.Popen):
    """A process within limits. wait() and communicate() raise Expired if it was ended at one."""
    def __init__(self, command, *, seconds=SECONDS, silent=SILENT, adopts=False, **options):
        self.watch = None
        super().__init__(command, **options)
        words = [os.path.basename(str(word)) if os.path.isabs(str(word)) else str(word) for word in command]
        self.watch = Watch(Tree(self.pid, adopts), " ".join(words)[:200], seconds, silent)
        self.watch.thread.start()

    def wait(self, timeout=None):
        code = super().wait(timeout)
        if self.watch:
            self.watch.stop()
            if self.watch.verdict:
                raise Expired(self.watch.verdict)
        return code


def start(command, **options):
    return Process(command, **options)


def run(command, *, check=False, capture_output=False, input=None, **options):
    """As subprocess.run, within limits."""
    if capture_output:
        options.update(stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if input is not None:
        options["stdin"] = subprocess.PIPE
    with start(command, **options) as process:
        try:
            out, err = process.communicate(input)
        except BaseException:
            process.watch.tree.kill()
            raise
    done = subprocess.CompletedProcess(command, process.returncode, out, err)
    if check:
        done.check_returncode()
    return done


def main():
    words = sys.argv[1:]
    seconds = float(words.pop(0))
    silent = seconds
    if words[0] == "--silent":
        silent, words = float(words[1]), words[2:]
    # Processes whose parents end become children of this one, and so stay in the tree.
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
    process = start(words, seconds=seconds, silent=silent, adopts=True)

    def interrupted(number, _):
        process.watch.tree.kill()
        os._exit(128 + number)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, interrupted)
    try:
        code = process.wait()
    except Expired:
        sys.exit(EXPIRED)
    process.watch.tree.kill()  # what it left behind
    sys.exit(code if code >= 0 else 128 - code)


if __name__ == "__main__":
    main()
