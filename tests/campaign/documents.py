"""Commands of README.md and of the user's pages: each one runs as printed, or stands here with the reason why it does not.

    documents.py TRAINER MPIRUN PREPARE DIAGNOSE SOURCE [unittest arguments]        SOURCE: the folder of the project

A page's indented blocks are commands, or what a program prints, which SHOWN lists by its first words. The commands of a page run
in their order, in a folder with links to the programs and to what a checkout has. What takes minutes runs with fewer steps.
"""
import os, re, subprocess, sys, tempfile, unittest

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import limited

TRAINER, MPIRUN, PREPARE, DIAGNOSE, SOURCE = (os.path.abspath(word) for word in sys.argv[1:6])

# First words of blocks that are no commands.
SHOWN = ("time UTC", "attention: ", "import json", "from transformers import", '{"messages": ', "error: rank ")

# What runs before a page's commands.
BEFORE = {
    "docs/usage.md": (
        "./prepare quickstart",
        "./trainer input/quickstart.in --quick 2 --set evaluation.problems=2 --set evaluation.rows=4",
        "./prepare cpp-headers",
        # Two steps end with a verdict that failed.
        "./trainer input/trm_small.in --quick 2 --set evaluation.rows=4 --set batch.per_rank=1 --set batch.global=1 || [ $? = 77 ]",
        # GSM8K is not part of the project; these problems have its format.
        "./prepare arithmetic --problems 200 --test-problems 20 --output data/like_gsm8k",
        "mkdir data/gsm8k && cp data/like_gsm8k/train.jsonl data/like_gsm8k/test.jsonl data/gsm8k"),
    "docs/troubleshooting.md": ("./prepare quickstart",),
}

# Commands that run with these options as well, since they take minutes as printed.
SHORTENED = {
    "./trainer input/laptop_gpt.in": "--quick 4 --set evaluation.rows=8",
    "./trainer input/laptop_gpt.in --resume": "--quick 6 --set evaluation.rows=8",
    "mpirun -n 2 ./trainer input/laptop_gpt.in --fresh": "--quick 4 --set evaluation.rows=8",
    "./trainer input/laptop_gpt.in --quick 20 --set output.directory=runs/from_laptop_gpt --set model.load=runs/laptop_gpt "
    "--set model.load_rule=matching --set model.qk_norm=T": "--set evaluation.rows=8 --set evaluation.every=0",
    "./trainer input/laptop_gpt.in --fresh --quick 20 --set output.directory=runs/profiled --set output.profile=10": "--set evaluation.rows=8 --set evaluation.every=0",
    "./trainer input/quickstart.in --set campaign.task=evaluate": "--set evaluation.problems=4",
    "./diagnose": "--no-checks",
}

# Commands that do not run here.
NOT_RUN = {
    "jobs/local.sh": "installs packages, builds and trains for minutes; what it starts is run by other tests",
    "tests/run.sh": "builds and runs all tests, this one too",
    "jobs/distill_small.sh": "slurm_distill runs it",
    "jobs/distill_languages.sh": "needs a GPU; its --help is tested",
    "./trainer input/distill_small_teacher.in --fresh": "slurm_distill runs it, in jobs/distill_small.sh",
    "man build/cpu/man/trainer.1": "the test of installations shows the pages where man is installed",
    "cp -r runs/NAME runs/NAME_bf16": "NAME stands for a run",
    "./trainer DECK --resume --set output.directory=runs/NAME_bf16 --set precision.compute=bf16 --set output.log_every=1": "DECK and NAME stand for a deck and a run",
}

PAGES = {"README.md": 4, "docs/usage.md": 30, "docs/troubleshooting.md": 4,
         "docs/faq.md": 1}  # with the least number of commands


def blocks(page):
    """The indented blocks of a page, as lists of lines without the indentation."""
    with open(os.path.join(SOURCE, page)) as f:
        text = f.read()
    return [
        re.sub(r"^    ", "", block, flags=re.M).rstrip().split("\n")
        for block in re.findall(r"(?:^\n|\A)((?:^    .*\n(?:^\n(?=    ))?)+)", text, re.M)
    ]


def commands(page):
    """Continued lines are joined, and comments left out."""
    for block in blocks(page):
        if not block[0].startswith(SHOWN):
            for line in re.sub(r" *\\\n *", " ", "\n".join(block)).split("\n"):
                command = re.sub(r"(^| +)# .*", "", line).strip()
                if command:
                    yield command


class Documents(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        for name in ("input", "bench", "jobs", "docs", "packaging", "README.md"):
            os.symlink(os.path.join(SOURCE, name), os.path.join(self.folder.name, name))
        for name, program in (("trainer", TRAINER), ("prepare", PREPARE), ("diagnose", DIAGNOSE)):
            os.symlink(program, os.path.join(self.folder.name, name))
        self.environment = dict(os.environ, OMP_NUM_THREADS="1", OMPI_ALLOW_RUN_AS_ROOT="1",
                                OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_rmaps_base_oversubscribe="1",
                                PATH=f"{os.path.dirname(MPIRUN)}:{os.environ['PATH']}")

    def tearDown(self):
        self.folder.cleanup()

    def run_command(self, command):
        done = limited.run(["bash", "-euc", command], cwd=self.folder.name, env=self.environment, text=True,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, 0, f"{command}\n{done.stdout[-3000:]}")

    def run_page(self, page):
        found = list(commands(page))
        self.assertGreaterEqual(len(found), PAGES[page], f"{page}: {found}")
        for command in BEFORE.get(page, ()):
            self.run_command(command)
        for command in found:
            if command not in NOT_RUN:
                self.run_command(f"{command} {SHORTENED.get(command, '')}")

    def test_readme(self):
        self.run_page("README.md")

    def test_usage(self):
        self.run_page("docs/usage.md")

    def test_troubleshooting(self):
        self.run_page("docs/troubleshooting.md")

    def test_faq(self):
        self.run_page("docs/faq.md")

    def test_what_is_listed_is_printed(self):
        """A command that no page prints any more is listed for nothing."""
        printed = {command for page in PAGES for command in commands(page)}
        self.assertEqual([c for c in (*SHORTENED, *NOT_RUN) if c not in printed], [])
        begun = [block[0] for page in PAGES for block in blocks(page)]
        self.assertEqual([words for words in SHOWN if not any(first.startswith(words) for first in begun)], [])


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]] + sys.argv[6:], verbosity=2)
