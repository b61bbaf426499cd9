"""Figures of plans in documents and decks are those that --dry-run prints.

    printed_plans.py TRAINER MPIRUN SOURCE [unittest arguments]
"""
import os, re, subprocess, sys, unittest

from tiny import TRAINER, limited

SOURCE = os.path.abspath(sys.argv[3])

# Deck, what it or its page says with figures in parentheses, dry run, and where that prints them, with a factor.
SAID = (
    ("input/h100_gpt350m.in", r"planned for one H200: about ([\d,]+) steps, ([\d.]+) billion tokens", "--device h200",
     (("steps", 1), ("tokens", 1e-3))),
    ("input/h100_gpt350m.in", r"billion tokens \(fp8: ([\d.]+)\)", "--device h200 --set precision.compute=fp8",
     (("tokens", 1e-3),)),
    ("input/h100_gpt350m.in", r"for two ([\d.]+) billion", "--device h200 --ranks 2", (("tokens", 1e-3),)),
    ("input/h100_gpt350m.in", r"for four ([\d.]+), for eight", "--device h200 --ranks 4", (("tokens", 1e-3),)),
    ("input/h100_gpt350m.in", r", for eight ([\d.]+)\.", "--device h200 --ranks 8", (("tokens", 1e-3),)),
    ("input/h100_gpt350m.in", r"planned ([\d.]+) hours on four H200",
     "--device h200 --ranks 4 --set campaign.max_steps=7200", (("time", 1 / 60),)),
    ("input/h100_gpt350m.in", r"four H200, ([\d.]+) on eight", "--device h200 --ranks 8 --set campaign.max_steps=7200",
     (("time", 1 / 60),)),
    ("input/h100_gpt350m_fast.in", r"plans about ([\d,]+) steps, ([\d.]+) billion tokens on one H200", "--device h200",
     (("steps", 1), ("tokens", 1e-3))),
    ("input/h100_gpt350m_fast.in", r"one H200 at the planned ([\d,]+) tokens/s", "--device h200", (("rate", 1),)),
    ("input/h100x8_distill_student.in", r"planned for eight ranks: ([\d.]+) GiB per GPU, checkpoints of (\d+) GiB",
     "--device h200 --ranks 8", (("memory per rank", 1), ("checkpoint", 1))),
    ("input/h100x8_distill_teacher.in", r"planned with tensor = 4: ([\d.]+) GiB of weights per GPU",
     "--device h200 --ranks 8 --set parallel.tensor=4", (("parameter memory", 1),)),
    ("input/gsm8k_plans.in", r"planned: ([\d.]+) GiB of weights per GPU", "--device h200", (("parameter memory", 1),)),
    ("input/h100x8_trm_fast_guide.in",
     r"phase one planned for eight H100: ([\d,]+) tokens/s, ([\d.]+) GiB per GPU, (\d+) min", "--device h100 --ranks 8",
     (("rate", 1), ("memory per rank", 1), ("time", 1))),
    ("input/h100x8_trm_extreme_guide.in",
     r"phase two planned for eight H100: ([\d,]+) tokens/s, ([\d.]+) GiB per GPU, (\d+) min", "--device h100 --ranks 8",
     (("rate", 1), ("memory per rank", 1), ("time", 1))),
)


def text_of(name):
    with open(os.path.join(SOURCE, name)) as f:
        return f.read()


class PrintedPlans(unittest.TestCase):
    def plan(self, deck, options):
        command = [TRAINER, deck, "--dry-run", "--without-data", *options.split()]
        done = limited.run(command, cwd=SOURCE, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                           env=dict(os.environ, OMP_NUM_THREADS="1"))
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout

    def figure(self, plan, name):
        found = re.search(rf"^  {name} +(?:about |at most )?([\d.,]+)( B$)?", plan, re.M)
        self.assertIsNotNone(found, f"{name}\n{plan}")
        return float(found.group(1).replace(",", "")) * (1000 if found.group(2) else 1)

    def check(self, where, said, planned):
        """`said` is `planned`, rounded to the digits it has."""
        digits = said.replace(",", "")
        unit = 10.0**-len(digits.partition(".")[2]) if "." in digits else 10.0**(len(digits) - len(digits.rstrip("0")))
        if planned >= 1000:
            unit = max(unit, 10.0**(len(str(int(planned))) - 4))  # a plan has four digits
        self.assertLessEqual(abs(float(digits) - planned), 0.51 * unit,
                             f"{where}: {said} is said, {planned:.6g} is planned")

    def test_decks_say_what_is_planned(self):
        for name, said, options, figures in SAID:
            with self.subTest(name):
                deck = text_of(name)
                page = text_of(re.search(r"^! Page +(docs/campaigns/\w+\.md)$", deck, re.M).group(1))
                found = re.findall(said, re.sub(r"\n(! )? *", " ", deck + page))
                self.assertTrue(found, f"{name} and its page do not say: {said}")
                plan = self.plan(name, options)
                for values in found:
                    for value, (figure, factor) in zip([values] if isinstance(values, str) else values, figures,
                                                       strict=True):
                        self.check(f"{name} {options}: {figure}", value, factor * self.figure(plan, figure))

    def test_the_table_of_eight_gpus_is_what_is_planned(self):
        section = text_of("docs/measurements/agreement.md").split("## Eight GPUs: planned")[1].split("\n## ")[0]
        common = re.search(r"^    \./trainer DECK\.in --dry-run --without-data (.*) OPTIONS$", section, re.M).group(1)
        rows = [[cell.strip().strip("`") for cell in line.strip("|").split("|")] for line in section.split("\n")
                if line.startswith("| `")]
        self.assertGreater(len(rows), 10)
        for deck, options, tokens, rate, memory, time in rows:
            with self.subTest(f"{deck} {options}"):
                plan = self.plan(f"{deck}.in", f"{common} {options}")
                unit = "requests" if "requests" in rate else "tokens"
                self.assertRegex(plan, rf"\n  rate +[\d.,]+ {unit}/s\n")
                self.check("rate", rate.split()[0], self.figure(plan, "rate"))
                self.check("memory", memory.split()[0], self.figure(plan, "memory per rank"))
                if tokens:
                    self.check("tokens per step", tokens.split()[0], self.tokens_of_step(plan, deck))
                if time:
                    hours, minutes = re.search(r"\n  time +(?:at most )?([\d.]+) (h|min)\n", plan).groups()
                    self.assertEqual(time.split()[1], minutes)
                    self.check("time", time.split()[0], float(hours))

    def tokens_of_step(self, plan, deck):
        rows = int(re.search(r"\n  batch +(\d+) =", plan).group(1))
        with open(os.path.join(SOURCE, f"{deck}.in")) as f:
            return rows * int(re.search(r"^ +context *= *(\d+)", f.read(), re.M).group(1))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]] + sys.argv[4:], verbosity=2)
