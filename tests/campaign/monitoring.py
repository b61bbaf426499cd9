"""What a run tells of its ranks, devices and kernels.

    monitoring.py TRAINER MPIRUN [unittest arguments]
"""
import re

from tiny import Campaign, main


class Monitoring(Campaign):
    def logged(self):
        return [line for line in self.metrics() if "train/loss" in line]

    def test_memory_and_time_of_the_process(self):
        self.run_trainer()
        for line in self.logged():
            self.assertGreaterEqual(line["system/process_memory_peak"], line["system/process_memory"])
            self.assertGreater(line["system/process_memory"], 1 << 20)
            self.assertGreater(line["system/process_cores"], 0)
            self.assertNotIn("system/slowest_rank", line)  # of a single rank
            self.assertFalse([name for name in line if "gpu" in name])  # no GPU here
        peaks = [line["system/process_memory_peak"] for line in self.logged()]
        self.assertEqual(peaks, sorted(peaks))
        with open(self.file("run/report.html")) as f:
            page = re.sub(r"<pre class=\"deck\">.*?</pre>", "", f.read(), flags=re.S)
        self.assertNotIn("gpu_memory", page)
        self.assertNotIn("GPU memory", page)
        self.assertIn("<dt>Memory, peak<dd", page)

    def test_the_slowest_rank_is_named_where_it_is_slower_by_the_margin(self):
        text = self.run_trainer(ranks=2)
        named = {
            int(step): (int(rank), int(percent))
            for step, rank, percent in re.findall(r"^[\d:]{8} +(\d+)  slowest: rank (\d) on \S+, \+(\d+)%$", text, re.M)
        }
        for line in self.logged():
            rank, excess = line["system/slowest_rank"], line["system/slowest_rank_excess"]
            self.assertIn(rank, (0, 1))
            self.assertGreaterEqual(excess, 0)  # of two, one is no faster than the other
            self.assertEqual(line["step"] in named, excess >= 0.1, (line, text))
            if line["step"] in named:
                self.assertEqual(named[line["step"]][0], rank)
                self.assertAlmostEqual(named[line["step"]][1], 100 * excess, delta=0.51)

    def test_pipeline_stages_are_not_compared(self):
        text = self.run_trainer("--set", "parallel.pipeline=2", ranks=2)
        self.assertNotIn("slowest:", text)
        self.assertTrue(all("system/slowest_rank" not in line for line in self.logged()))

    def test_kernels_are_in_the_head_of_the_log(self):
        for compute, words in (("fp32", "fp32, stored and multiplied$"),
                               ("tf32", "tf32: stored in fp32, products in fp32, since CPUs have no TF32$"),
                               ("bf16", "bf16, stored and multiplied; sums, master weights and optimizer in fp32$")):
            text = self.run_trainer("--fresh", "--set", f"precision.compute='{compute}'", "--set",
                                    "campaign.max_steps=6")
            head = text[:text.index("time UTC")]
            self.assertRegex(head, r"(?m)^attention: portable \(\w+\), causal, heads of 8$")
            self.assertRegex(head,
                             r"(?m)^products: (portable \(\w+\)|OpenBLAS, kernels for \w+|BLAS of Kokkos Kernels)$")
            self.assertRegex(head, "(?m)^precision: " + words)
            self.assertEqual("products: portable" in head, compute == "bf16")
        text = self.run_trainer("--fresh", "--set", "model.window_start=8", "--set", "model.window_steps=4", "--set",
                                "campaign.max_steps=6")
        self.assertRegex(text, r"(?m)^attention: portable \(\w+\), key spans, heads of 8$")


main()
