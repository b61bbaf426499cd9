"""Checkpoints of real runs, read as docs/checkpoint.md describes. Needs h5py.

    checkpoints.py TRAINER MPIRUN DOCUMENT [unittest arguments]        DOCUMENT: docs/checkpoint.md
"""
import os, re, subprocess, sys

DOCUMENT = os.path.abspath(sys.argv.pop(3))

import h5py
import numpy as np

from tiny import MUON, Campaign, limited, main


def sets(*items):
    return tuple(x for item in items for x in ("--set", item))


def described(text):
    """The paths of the document's table, up to where a parameter's name follows."""
    return set(re.findall(r"^\| `/optimizer/(\w+)/PARAMETER`", text, re.M))


class Checkpoints(Campaign):
    def setUp(self):
        super().setUp()
        with open(DOCUMENT) as f:
            self.text = f.read()
        self.states = {}

    def open(self, directory, step):
        return h5py.File(self.file(f"{directory}/checkpoints/step_{step:08}/checkpoint.h5"))

    def check_paths(self, directory, step, states):
        """Each parameter has its optimizer states, in its shape, and there is nothing else."""
        with self.open(directory, step) as f:
            self.assertEqual(set(f["optimizer"]), states)
            self.assertLessEqual(states, described(self.text))
            shapes = {}
            f.visititems(lambda name, item: shapes.update({name: item.shape})
                         if isinstance(item, h5py.Dataset) else None)
            parameters = {name for name in shapes if not name.startswith("optimizer/")}
            for name in shapes:
                if name.startswith("optimizer/"):
                    _, state, parameter = name.split("/", 2)
                    self.assertEqual(shapes[name], shapes[parameter], name)
            for parameter in parameters:
                kept = {state for state in states if f"optimizer/{state}/{parameter}" in shapes} - {"ema"}
                self.assertIn(kept, ({"exp_avg", "exp_avg_sq"}, {"momentum_buffer"}), parameter)
            self.assertIn("model/layers/0/self_attn/q_proj/weight", parameters)

    def test_paths_of_every_optimizer_and_layout(self):
        for name, ranks, states, *options in (("adamw", 1, {"exp_avg", "exp_avg_sq"}), ("average", 1, {
                "exp_avg", "exp_avg_sq", "ema"
        }, *sets("optimizer.ema=0.9")), ("muon", 1, {"exp_avg", "exp_avg_sq", "momentum_buffer"},
                                         *MUON), ("sharded", 2, {"exp_avg",
                                                                 "exp_avg_sq"}, *sets("parallel.shard='optimizer'")),
                                              ("stages", 2, {"exp_avg", "exp_avg_sq"}, *sets("parallel.pipeline=2"))):
            self.run_trainer(*sets(f"output.directory={name}", "campaign.max_steps=10"), *options, ranks=ranks)
            self.check_paths(name, 10, states)

    def test_moments_are_adamws(self):
        """After one update of gradient g they are (1 - beta1) g and (1 - beta2) g^2."""
        self.run_trainer(*sets("campaign.max_steps=1", "optimizer.warmup_steps=0", "checkpoint.every=1"))
        with self.open("run", 1) as f:
            self.assertEqual(f.attrs["updates"], 1)
            for name in ("model/embed_tokens/weight", "model/layers/1/mlp/down_proj/weight", "model/norm/weight"):
                first, second = (
                    f[f"optimizer/{state}/{name}"][()].astype(float) for state in ("exp_avg", "exp_avg_sq"))
                self.assertGreater(np.abs(first).max(), 0)
                np.testing.assert_allclose(second / 0.05, (first / 0.1)**2, rtol=1e-4, atol=1e-20)

    def test_the_examples_run(self):
        self.run_trainer(*sets("optimizer.ema=0.9"))
        os.makedirs(self.file("runs"))
        os.symlink(self.file("run"), self.file("runs/quickstart"))
        os.symlink("step_00000040", self.file("run/checkpoints/step_00001700"))
        examples = re.findall(r"```python\n(.*?)```", self.text, re.S)
        self.assertEqual(len(examples), 3)
        said = "".join(self.say(sys.executable, "-c", example) for example in examples)
        self.assertIn("step 40 of 'tiny'", said)
        self.assertIn("kept: ema exp_avg exp_avg_sq", said)
        update = re.search(r"q_proj/weight \(32, 32\) mean \|update\| / lr ([\d.]+)", said)
        self.assertTrue(0 < float(update.group(1)) < 3, said)
        self.assertGreater(int(re.search(r"(\d+) parameters", said).group(1)), 32 * 32)
        self.assertGreater(float(re.search(r"largest difference (\S+)", said).group(1)), 0)
        self.assertIn("best checkpoint: step_00000040", said)

    def test_the_commands_run(self):
        self.run_trainer()
        os.makedirs(self.file("runs"))
        os.symlink(self.file("run"), self.file("runs/quickstart"))
        os.symlink("step_00000040", self.file("run/checkpoints/step_00001700"))
        commands = re.findall(r"^    (h5\w+ .*runs/quickstart/.*)$", self.text, re.M)
        self.assertEqual(len(commands), 4)
        said = "".join(self.say(*command.split()) for command in commands)
        for text in ("/model/layers/0/self_attn/q_proj/weight Dataset {32, 32}", "(0): 40", "CHECKSUM FLETCHER32"):
            self.assertIn(text, said)

    def say(self, *command):
        done = limited.run(command, cwd=self.path, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout

    def test_other_documents_name_no_other_path(self):
        root = os.path.dirname(os.path.dirname(DOCUMENT))
        for name in ("README.md", "lib/checkpoint/checkpoint.hpp"):
            with open(os.path.join(root, name)) as f:
                named = set(re.findall(r"/optimizer/(\w+)/", f.read()))
            self.assertLessEqual(named, described(self.text), name)


if __name__ == "__main__":
    main()
