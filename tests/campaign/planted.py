"""Links, pipes and devices that a stranger has placed in a run's directory, a model's folder or next to an output.

    planted.py TRAINER MPIRUN PREPARE [unittest arguments]
"""
import json, os, shutil, signal, subprocess, time

from stranger import PREPARE, Stranger, sets
from tiny import TRAINER, limited, main

RENAMED = ("deck.in", "run.json", "samples.txt", "report.html", "rate.json", "loss.svg", "verdict.json",
           "evaluation.json")
LINK = "symbolic link"
OPEN = ("257", "56")  # openat(2) of x86-64 and of aarch64, in /proc/PID/syscall


class Planted(Stranger):
    def setUp(self):
        super().setUp()
        self.deck(6)
        self.run_trainer("--set", "generation.samples=1")
        os.rename(self.file("run"), self.file("honest"))

    def fresh(self):
        """A copy of the run, as run."""
        shutil.rmtree(self.file("run"), ignore_errors=True)
        shutil.copytree(self.file("honest"), self.file("run"))

    def place(self, name, target):
        """run/NAME is a link to the target, or a pipe, in place of what was there."""
        path = self.file(f"run/{name}")
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        elif os.path.lexists(path):
            os.remove(path)
        if target == "pipe":
            os.mkfifo(path)
        else:
            os.symlink(target if os.path.isabs(target) else self.file(target), path)

    def plant(self, name, target):
        self.fresh()
        self.place(name, target)

    RESUME = ("--resume", *sets("campaign.max_steps=8", "generation.samples=1"))

    def test_what_is_renamed_into_place_takes_the_place_of_a_link(self):
        for target in ("outside/a", "outside/absent"):
            self.fresh()
            for name in RENAMED:
                for ending in ("", ".new", ".new-0123456789abcdef", ".tmp", ".tmp-0123456789abcdef"):
                    self.place(name + ending, target)
            self.fine(*self.RESUME)
            for name in ("deck.in", "run.json", "samples.txt", "report.html", "loss.svg"):
                self.assertFalse(os.path.islink(self.file(f"run/{name}")), name)
                self.assertGreater(os.path.getsize(self.file(f"run/{name}")), 0)

    def test_what_is_appended_to_is_not_a_link(self):
        for name, target in (("log.txt", "outside/a"), ("log.txt", "outside/absent"), (".lock", "outside/a"),
                             (".lock", "outside/absent"), ("metrics.jsonl", "outside/absent"), ("log.txt",
                                                                                                "/dev/null")):
            with self.subTest(name, target=target):
                self.plant(name, target)
                self.refused(*self.RESUME, naming=f"run/{name}", why=LINK)
        self.plant("metrics.jsonl", "outside/a")  # its lines are not a run's: a file without them takes its place
        self.fine(*self.RESUME)
        self.assertFalse(os.path.islink(self.file("run/metrics.jsonl")))

    def test_no_folder_is_written_through_a_link(self):
        for name in ("checkpoints", "profile"):
            for target in ("outside", "outside/absent"):
                with self.subTest(name, target=target):
                    self.plant(name, target)
                    self.refused(*self.RESUME, *sets("output.profile=7"), naming=f"run/{name}", why=LINK)
        for target in ("outside", "outside/absent"):
            self.plant(".report", target)
            self.fine(*self.RESUME)
            self.assertIn("<svg", self.read("run/report.html"))
        self.plant("checkpoints/.session", "outside")
        text = self.run_trainer(*self.RESUME, "--set", "parallel.shard='optimizer'", ranks=2, code=1)
        self.assertIn(LINK, text)
        self.assertEqual(sorted(os.listdir(self.file("outside"))), ["a", "b"])

    def test_events_of_tensorboard(self):
        self.fresh()
        for number in (0, 9999999999, 9223372036854775807):
            self.place(f"events.out.tfevents.{number:010}.tern", "outside/a")
        self.fine(*self.RESUME)
        self.assertEqual(self.read("outside/a"), "the user's a\n")

    def test_a_run_on_another_disk_stays(self):
        os.mkdir(self.file("disk"))
        os.symlink(self.file("disk"), self.file("run"))
        self.fine("--set", "generation.samples=1")
        self.fine(*self.RESUME)
        self.assertTrue(os.path.islink(self.file("run")))
        self.assertIn("report.html", os.listdir(self.file("disk")))

    def test_pipes_and_devices(self):
        """Nothing waits for the other end."""
        step = "checkpoints/step_00000006"
        for name in ("log.txt", "metrics.jsonl", ".lock", *RENAMED, f"{step}/evaluation.json", f"{step}/checkpoint.h5",
                     f"{step}/checkpoint.sum", "events.out.tfevents.0000000000.tern"):
            for target in ("pipe", "/dev/zero") if name in ("log.txt", "metrics.jsonl",
                                                            f"{step}/evaluation.json") else ("pipe",):
                self.plant(name, target)
                with self.subTest(name, target=target):
                    code, text = self.attempt(*self.RESUME)
                    self.assertIn(code, (0, 1), text)
                    if code == 1:
                        self.assertIn(name, text)

    def test_models(self):
        shutil.copytree(self.file("honest"), self.file("run"))
        self.fine("--export", "hf")
        for name in ("config.json", "tokenizer.json", "model.safetensors", "tokenizer_config.json",
                     "generation_config.json"):
            shutil.rmtree(self.file("other"), ignore_errors=True)
            shutil.copytree(self.file("hf"), self.file("other"))
            os.remove(self.file(f"other/{name}"))
            os.mkfifo(self.file(f"other/{name}"))
            shutil.rmtree(self.file("new"), ignore_errors=True)
            with self.subTest(name):
                code, text = self.attempt(
                    "--export", "new",
                    *sets("generation.checkpoint='other'", "model.load='other'", "data.tokenizer='other'"))
                self.assertEqual(code, 1, text)
                self.assertIn(name, text)
        # Files that an export copies are the model's, not others that links name; a cache of the hub has its blobs.
        shutil.rmtree(self.file("other"))
        shutil.copytree(self.file("hf"), self.file("other"))
        export = ("--export", "new",
                  *sets("generation.checkpoint='other'", "model.load='other'", "data.tokenizer='other'"))
        os.symlink(self.file("outside/a"), self.file("other/LICENSE"))
        self.refused(*export, naming="other/LICENSE", why="out of its folder")
        os.remove(self.file("other/LICENSE"))
        os.makedirs(self.file("hub/blobs"))
        os.makedirs(self.file("hub/snapshots"))
        os.rename(self.file("other"), self.file("hub/snapshots/1"))
        for name in os.listdir(self.file("hub/snapshots/1")):
            os.rename(self.file(f"hub/snapshots/1/{name}"), self.file(f"hub/blobs/{name}"))
            os.symlink(f"../../blobs/{name}", self.file(f"hub/snapshots/1/{name}"))
        self.fine(
            "--export", "new",
            *sets("generation.checkpoint='hub/snapshots/1'", "model.load='hub/snapshots/1'",
                  "data.tokenizer='hub/snapshots/1'"))
        self.assertTrue(os.path.isfile(self.file("new/config.json")))

    def test_a_draft_of_another_stays(self):
        shutil.copytree(self.file("honest"), self.file("run"))
        self.write("hf.partial/mine", "x")
        self.fine("--export", "hf")
        self.assertEqual(self.read("hf.partial/mine"), "x")
        self.assertEqual([name for name in os.listdir(self.path) if "partial" in name], ["hf.partial"])

    def test_outputs_of_prepare(self):
        self.write("t.txt", "a text\n" * 20)
        text = ("text", "--input", "t.txt", "--output", "o", "--tokenizer", "bytes", "--valid-fraction", "0.1")
        for target in ("outside", "outside/absent"):
            os.symlink(self.file(target), self.file(".o.partial"))
            self.refused(*text, program=PREPARE, naming=".o.partial", why=LINK)
            os.remove(self.file(".o.partial"))
        for name in ("meta.json", ".train_00000.bin.partial", "train_00000.bin"):
            os.makedirs(self.file(".o.partial"))
            os.symlink(self.file("outside/a"), self.file(f".o.partial/{name}"))
            self.fine(*text, "--force", program=PREPARE)
        self.write(".o.old/mine", "x")
        self.fine(*text, "--force", program=PREPARE)
        self.assertEqual(self.read(".o.old/mine"), "x")
        self.assertEqual(sorted(n for n in os.listdir(self.path) if n.startswith(".")), [".o.old"])
        for name in ("s.jsonl", "t.txt"):
            os.mkfifo(self.file(f"pipe_{name}"))
        self.refused("sentences", "--input", "pipe_s.jsonl", "--output", "p", program=PREPARE, naming="pipe_s.jsonl",
                     why="pipe")
        self.refused("text", "--input", "pipe_t.txt", "--output", "p", "--tokenizer", "bytes", program=PREPARE,
                     naming="pipe_t.txt")

    def test_answers(self):
        self.write("r.txt", "a\nb\n")
        shutil.copytree(self.file("honest"), self.file("model"))
        answer = sets("campaign.task='generate'", "model.load='model'", "generation.input='r.txt'",
                      "generation.max_tokens=4", "output.directory='out'")
        for target in ("outside", "outside/absent"):
            os.mkdir(self.file("out"))
            os.symlink(self.file(target), self.file("out/parts"))
            self.refused(*answer, "--resume", naming="out/parts", why=LINK)
            shutil.rmtree(self.file("out"))
        self.write("out/parts/other", "")
        os.symlink(self.file("outside/a"), self.file("out/parts/replica_0000.jsonl"))
        self.refused(*answer, "--resume", naming="replica_0000.jsonl", why=LINK)
        shutil.rmtree(self.file("out"))
        self.fine(*answer)
        # A part that cannot be read is not an empty one: its requests would be answered again.
        os.remove(self.file("out/parts/replica_0000.jsonl"))
        os.mkfifo(self.file("out/parts/replica_0000.jsonl"))
        self.refused(*answer, "--resume", naming="replica_0000.jsonl", why="pipe")

    def test_a_signal_ends_what_waits_for_a_file(self):
        os.mkfifo(self.file("pipe.in"))
        for ranks in (1, 2):
            command = self.command(ranks=ranks)[:-1] + ["pipe.in"]
            child = limited.start(command, cwd=self.path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            self.wait_in_open(child, ranks)
            child.send_signal(signal.SIGTERM)
            text, _ = child.communicate()
            self.assertNotEqual(child.returncode, 0)
            if ranks == 1:
                self.assertEqual(child.returncode, 75, text)
                self.assertIn("stopped by a signal", text)

    def wait_in_open(self, child, ranks):
        """Until the trainer, or each of its ranks, waits in open() of the pipe."""
        pid = child.pid
        while child.poll() is None:
            pids = [str(pid)]
            if ranks > 1:
                pids = []
                for task in os.listdir(f"/proc/{pid}/task"):
                    with open(f"/proc/{pid}/task/{task}/children") as f:
                        pids += f.read().split()
            waits = 0
            for p in pids:
                try:
                    with open(f"/proc/{p}/syscall") as f, open(f"/proc/{p}/comm") as g:
                        waits += f.read().split()[0] in OPEN and g.read().startswith("trainer")
                except OSError:
                    pass
            if waits == ranks:
                return
            time.sleep(0.01)
        self.fail(f"it ended with {child.returncode}")

    def test_a_deck_from_standard_input(self):
        with open(self.file("tiny.in")) as f:
            deck = f.read()
        done = limited.run([TRAINER, "/dev/stdin", "--print-deck"], cwd=self.path, input=deck, text=True,
                           stdout=subprocess.PIPE)
        self.assertEqual(done.returncode, 0)
        self.assertIn("name = 'tiny'", done.stdout)

    def test_plots_of_odd_names_and_values(self):
        """A quote in the directory's name; metrics that gnuplot cannot draw cost their own plot only."""
        for name in ("it's a run", 'say "hi" $HOME `x`'):
            self.fine("--set", "output.directory='%s'" % name.replace("'", "''"))
            self.assertTrue(os.path.exists(self.file(f"{name}/loss.svg")), name)
        shutil.rmtree(self.file("run"), ignore_errors=True)
        shutil.copytree(self.file("honest"), self.file("run"))
        odd = {
            "step": 1, "time": 1.0, "train/loss_'x": 1e308, "val/\x1b]0;x\x07": 1.0, "a\nset output '/tmp/x": 1,
            "x" * 300: 2, "train/grad_norm": 1e-320
        }
        with open(self.file("run/metrics.jsonl"), "a") as f:
            for step in range(1, 4):
                f.write(
                    json.dumps(dict(odd, step=step, **{"x" * 300: step, "train/loss_'x": 10.0**(300 * step % 308)})) +
                    "\n")
        for name in os.listdir(self.file("run")):
            if name.endswith(".svg"):
                os.remove(self.file(f"run/{name}"))
        self.fine("--resume", "--set", "campaign.max_steps=8")
        self.assertIn("loss.svg", os.listdir(self.file("run")))
        self.assertIn("throughput.svg", os.listdir(self.file("run")))


if __name__ == "__main__":
    main()
