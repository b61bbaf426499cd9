"""How runs of a tiny model end: by their rules, by signals, at the end of a job's time, on a full disk, next to another process.

    stops.py TRAINER MPIRUN [unittest arguments]        each class is one ctest entry
"""
import glob, os, re, resource, signal, subprocess, time

from tiny import Campaign, at_step, limited, main


class Stops(Campaign):
    def test_finished_run_resumes_to_nothing(self):
        self.run_trainer()
        self.run_trainer("--resume")
        self.assertEqual(sorted(self.steps()), list(range(1, 41)))

    def test_target_loss(self):
        text = self.run_trainer("--set", "evaluation.target_loss=5.5", "--set", "cost.dollars_per_gpu_hour=3")
        self.assertRegex(text, r"reached validation loss \d+\.\d+ <= 5\.5000 at step 20: .* tokens, \$\d+\.\d\d")

    def test_patience(self):
        text = self.run_trainer("--set", "evaluation.patience=1", "--set", "evaluation.every=5", "--set",
                                "optimizer.lr=1e-30")
        self.assertIn("stopped by patience at step 10", text)

    def test_max_hours(self):
        text = self.run_trainer("--set", "campaign.max_hours=1e-9")
        self.assertIn("stopped by max_hours at step 1:", text)

    def test_divergence_ends_with_its_own_code_and_the_last_good_checkpoint(self):
        text = self.run_trainer("--set", "optimizer.lr=1e30", "--set", "optimizer.warmup_steps=0", "--set",
                                "output.skip_limit=3", "--set", "optimizer.weight_decay=0", code=76)
        self.assertIn("3 in a row", text)
        self.assertIn("last good checkpoint", text)

    def run_until(self, seconds):
        """Exit code and output in a Slurm job that ends in this many seconds."""
        env = dict(os.environ, OMP_NUM_THREADS="1", SLURM_JOB_END_TIME=str(int(time.time()) + seconds))
        done = limited.run(self.command("--resume"), cwd=self.path, env=env, text=True, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT)
        return done.returncode, done.stdout

    def test_the_end_of_a_slurm_job_is_a_stop(self):
        self.deck(1000000)
        for seconds in (15, 60, 240):  # a busy machine may need the first for the start
            code, text = self.run_until(seconds)
            if "ask for more time" not in text:
                break
        self.assertEqual(code, 75, text)
        self.assertIn("by the end of the job's time: checkpoint written", text)

    def test_a_slurm_job_without_time_for_a_step_is_not_queued_again(self):
        code, text = self.run_until(2)
        self.assertEqual(code, 1, text)
        self.assertIn("ask for more time", text)
        self.assertEqual(text.count("error:"), 1)

    def test_time_and_cost_count_the_whole_run(self):
        text = self.run_trainer("--set", "cost.dollars_per_gpu_hour=3600", "--set", "evaluation.rows=200")
        lines = self.metrics()
        self.assertGreater(
            float(re.search(r"tokens, \$([\d.]+)\n", text).group(1)) + 0.01,
            lines[-1]["time"] - lines[0]["time"])  # steps only: a tenth


class Signals(Campaign):
    """Reasons to stop other than the last step."""
    def start(self, *options, **more):
        env = dict(os.environ, OMP_NUM_THREADS="1")
        return limited.start(self.command(*options), cwd=self.path, env=env, text=True, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, **more)

    def test_every_signal_that_asks_for_a_stop(self):
        self.deck(100000)
        for number in (signal.SIGTERM, signal.SIGUSR1, signal.SIGINT, signal.SIGHUP, signal.SIGXCPU):
            code, text = self.interrupt_after(3, "--set", f"output.directory={number.name}", number=number)
            self.assertEqual(code, 75, text)
            self.assertIn(f"({number.name})", text)
            self.assertIn("checkpoint written", text)

    def test_nohup_stays_so(self):
        child = self.start(preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        with child.stdout:
            for line in child.stdout:
                if at_step(1, line):
                    os.kill(child.pid, signal.SIGHUP)
        self.assertEqual(child.wait(), 0)

    def test_before_the_first_step(self):
        """As soon as the handler is installed: before anything slow."""
        for _ in range(20):  # on a busy machine the trainer may get far between two looks
            child = self.start("--resume")
            while child.poll() is None:
                with open(f"/proc/{child.pid}/status") as f:
                    caught = re.search(r"SigCgt:\s*([0-9a-f]+)", f.read())
                if caught and int(caught.group(1), 16) >> (signal.SIGTERM - 1) & 1:
                    break
            with open(f"/proc/{child.pid}/maps") as f:
                early = "mca_btl" not in f.read()  # MPI has not started
            child.send_signal(signal.SIGTERM if early else signal.SIGKILL)
            text = child.communicate()[0]
            if early:
                break
        self.assertTrue(early)
        self.assertEqual(child.returncode, 75, text)
        self.assertIn("nothing is lost", text)
        self.run_trainer("--resume")

    def test_other_tasks_leave_signals_to_the_system(self):
        self.run_trainer()
        child = self.start("--set", "campaign.task='evaluate'", "--set", "evaluation.rows=100000", "--set",
                           "batch.per_rank=1")
        with child.stdout:
            for line in child.stdout:
                if line.startswith("valid:"):
                    child.send_signal(signal.SIGTERM)
        self.assertIn(child.wait(), (0, -signal.SIGTERM))

    def test_the_reader_of_the_output_may_end(self):
        child = self.start()
        child.stdout.readline()
        child.stdout.close()
        self.assertEqual(child.wait(), 0)
        self.assertEqual(sorted(self.steps()), list(range(1, 41)))
        with open(self.file("run/log.txt")) as f:
            self.assertIn("finished at step 40", f.read())


class Loss(Campaign):
    """What a run must never lose, or never lose silently."""
    def limited(self, bytes_of_a_file):
        """A full disk: files end at this many bytes."""
        return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (bytes_of_a_file, bytes_of_a_file))

    def run_limited(self, *options, bytes_of_a_file):
        return limited.run(self.command(*options), cwd=self.path, env=dict(os.environ, OMP_NUM_THREADS="1"), text=True,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, preexec_fn=self.limited(bytes_of_a_file))

    def test_a_full_disk_at_the_end_is_not_a_success(self):
        # Larger than what MPI needs, smaller than a checkpoint: 2.6 million numbers and two moments of each.
        large = ("--set", "model.hidden=256", "--set", "model.layers=4", "--set", "model.ffn_hidden=512")
        done = self.run_limited(*large, bytes_of_a_file=12_000_000)
        self.assertEqual(done.returncode, 74, done.stdout)
        self.assertIn("COULD NOT BE WRITTEN", done.stdout)
        self.assertNotIn("finished", done.stdout)
        self.assertFalse(os.path.exists(self.file("run/checkpoints/best.txt")))
        self.run_trainer(*large, "--resume")  # with space again: nothing was written, so from scratch
        self.assertTrue(os.path.exists(self.file("run/checkpoints/step_00000040/checkpoint.h5")))

    def test_checkpoints_that_cannot_be_read_are_not_started_over(self):
        self.run_trainer()
        before = self.metrics()
        for step in glob.glob(self.file("run/checkpoints/step_*")):
            os.rename(f"{step}/checkpoint.h5", f"{step}/away.h5")
        names = sorted(os.listdir(self.file("run/checkpoints")))
        text = self.run_trainer("--resume", code=1)
        for word in ("can be read", "step_00000040", "--fresh"):
            self.assertIn(word, text)
        self.assertEqual(self.metrics(), before)
        self.assertEqual(sorted(os.listdir(self.file("run/checkpoints"))), names)
        for step in glob.glob(self.file("run/checkpoints/step_*")):
            os.rename(f"{step}/away.h5", f"{step}/checkpoint.h5")
        self.run_trainer("--resume")

    def test_two_processes_on_one_directory(self):
        self.deck(100000)
        code, text = None, ""
        child = limited.start(self.command(), cwd=self.path, env=dict(os.environ, OMP_NUM_THREADS="1"), text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        try:
            for line in child.stdout:
                if at_step(20, line):
                    break
            for option in ("--resume", "--fresh"):
                text = self.run_trainer(option, code=1)
                self.assertIn(f"run is in use by process {child.pid} on ", text)
            child.send_signal(signal.SIGTERM)
            child.stdout.read()
            self.assertEqual(child.wait(), 75)
        finally:
            child.kill()
            child.stdout.close()
        self.assertFalse(os.path.exists(self.file("run.1")))
        self.deck(40)
        self.run_trainer("--fresh")


if __name__ == "__main__":
    main()
