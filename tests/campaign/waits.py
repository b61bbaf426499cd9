"""Ranks that wait for others: what once made all wait forever, and what is reported of a rank that does not arrive.

    waits.py TRAINER MPIRUN [unittest arguments]
"""
import json, os, random, re, signal, subprocess

from tiny import Campaign, at_step, limited, main, ranks_of


def sets(*items):
    return tuple(x for item in items for x in ("--set", item))


class Waits(Campaign):
    KEYS = ("train/loss", "train/grad_norm", "val/loss")

    def write(self, name, lines):
        with open(self.file(f"data/{name}.jsonl"), "w") as f:
            f.writelines(json.dumps(line) + "\n" for line in lines)

    def check_rowless_micro_batch(self, *options):
        """Of 7 rows, one per micro-batch, the second replica has none in its last micro-batch."""
        options = sets("data.train='data/train.jsonl'", "data.valid='data/valid.jsonl'", "data.packing=F",
                       "model.context=48", "batch.per_rank=1", "evaluation.rows=8", "checkpoint.every=1000", *options)
        self.run_trainer(*options, *sets("output.directory=one"))
        self.run_trainer(*options, *sets("output.directory=four", "parallel.pipeline=2"), ranks=4)
        self.assertEqual(sorted(self.steps("four", "val/loss")), [0, 20, 40])
        self.compare("one", "four", 1e-4, self.KEYS)

    def test_evaluation_of_conversations_that_leave_a_replica_without_rows(self):
        rng = random.Random(5)
        for name, n in (("train", 200), ("valid", 7)):
            questions = [rng.choice(("alpha", "left", "day")) + "?" * rng.randint(0, 12) for _ in range(n)]
            self.write(name, ({"messages": [{"role": "user", "content": q}, {"role": "assistant", "content": q[::-1]}]}
                              for q in questions))
        self.check_rowless_micro_batch("objective.kind='supervised'")

    def test_evaluation_of_samples_that_leave_a_replica_without_rows(self):
        rng = random.Random(3)
        for name, n in (("train", 300), ("valid", 7)):
            pairs = [(rng.randint(1, 20), rng.randint(1, 20)) for _ in range(n)]
            self.write(name,
                       ({"question": f"{a} and {b}", "answer": f"{a}+{b}={a + b}\n#### {a + b}"} for a, b in pairs))
        self.check_rowless_micro_batch("objective.kind='block_diffusion'", "data.question_tokens=16",
                                       "data.plan_tokens=8", "data.execution_tokens=24", "objective.hierarchy='hdp'",
                                       "objective.plan_block=0", "objective.execution_block=4",
                                       "objective.clip_search=F")

    def check_stopped(self, stopped, waiting, *options):
        """The rank `stopped` is stopped in the middle of a run: the others report it and all end."""
        self.deck(100000)
        for minutes in ("0.1", "0.5", "2.5"):  # on a busy machine the shorter ones may end the run before its step 20
            ranks, code, text = self.stop_rank(stopped, minutes, *options)
            if ranks:
                break
            self.assertEqual(code, 70, text)
        self.assertEqual(code, 70, text)
        said = {
            int(rank): what for rank, what in re.findall(
                r"error: rank (\d) of 4 on \S+ has waited [\d.]+ minutes, since \d{4}-\d\d-\d\d \d\d:\d\d:\d\d, in (.*)",
                text)
        }
        self.assertNotIn(stopped, said)
        self.assertGreater(len(said), 0, text)
        for what in said.values():
            self.assertRegex(what, waiting)
            self.assertIn(f"longer than &parallel wait_minutes = {minutes}", what)
        for pid in ranks:  # none is left behind
            self.assertFalse(os.path.exists(f"/proc/{pid}") and self.rank_of(pid) is not None, pid)

    def stop_rank(self, stopped, minutes, *options):
        """Process ids of the ranks, none if the run ended before; exit code; what was printed after the stop."""
        command = self.command(
            *options,
            *sets(f"parallel.wait_minutes={minutes}", "output.log_every=10", "evaluation.every=0", "checkpoint.every=0",
                  "output.directory='minutes" + minutes + "'"), ranks=4)
        ranks, text = [], ""
        child = limited.start(command, cwd=self.path, env=dict(os.environ, OMP_NUM_THREADS="1"), text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        try:
            for line in child.stdout:
                text += line
                if at_step(20, line):
                    ranks = ranks_of(child, 4)
                    os.kill({self.rank_of(pid): pid for pid in ranks}[stopped], signal.SIGSTOP)
                    text = child.stdout.read()
            return ranks, child.wait(), text
        finally:
            child.kill() if child.poll() is None else None
            child.stdout.close()

    def rank_of(self, pid):
        try:
            with open(f"/proc/{pid}/environ", "rb") as f:
                found = re.search(rb"OMPI_COMM_WORLD_RANK=(\d+)", f.read())
        except (FileNotFoundError, ProcessLookupError):
            return None
        return int(found.group(1)) if found else None

    def test_a_rank_that_stands_still_ends_all(self):
        self.check_stopped(2, r"(all_reduce|broadcast|barrier)( of \d+ bytes)? among all 4 ranks")

    def test_a_stage_that_stands_still_ends_all(self):
        self.check_stopped(
            3, r"exchange of \d+ bytes( from its rank \d)?( to its rank \d)? among the 2 ranks of 'pipeline' "
            r"\(\d, \d\)|(all_reduce|broadcast|barrier)( of \d+ bytes)? among (all 4 ranks|the 2 ranks of '\w+' )",
            *sets("parallel.pipeline=2"))


if __name__ == "__main__":
    main()
