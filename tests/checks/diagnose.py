"""diagnose on two ranks, as a script reads it, and the trainer takes its deck lines.

usage: diagnose.py DIAGNOSE TRAINER MPIEXEC
"""
import json
import os
import subprocess
import sys

diagnose, trainer, mpiexec = sys.argv[1:]
environment = dict(os.environ, OMP_NUM_THREADS="1")


def run(ranks, *options):
    command = [
        mpiexec, "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n",
        str(ranks), diagnose, "--no-checks", *options
    ]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment).stdout


found = json.loads(run(2, "--json"))
assert set(found["versions"]) >= {"tern", "commit", "Kokkos"}, found
assert len(found["ranks"]) == 2, found
for rank in found["ranks"]:
    assert rank["total_gib"] > 0 and rank["processors"] and "numa_node" in rank, rank
rates = {rate["name"]: rate for rate in found["rates"]}
assert {
    "copy (read + write)", "matrix product, float", "matrix product, bf16", "attention forward, heads of 64",
    "attention backward, heads of 128", "all-reduce, float", "on the busiest link"
} <= set(rates), found
assert all(0 < rate["least"] <= rate["most"] and 0 <= rate["slowest_rank"] < 2 for rate in rates.values()), found
assert [pair["ranks"] for pair in found["pairs"]] == [[0, 1]], found
assert all(pair["rate"] > 0 and pair["connection"] for pair in found["pairs"]), found
assert found["rows_to_fill"] > 0, found
assert "checks" not in found, found

lines = [f"{line['group']}.{line['name']}" for line in found["deck"]]
assert {"precision.compute", "model.attention", "batch.per_rank", "parallel.shard"} <= set(lines), found
assert all(line["reason"] for line in found["deck"]), found
overrides = [
    option for line in found["deck"] for option in ("--set", f"{line['group']}.{line['name']}={line['value']}")
]
root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
printed = subprocess.run([trainer, "input/laptop_gpt.in", "--print-deck", *overrides], check=True, cwd=root,
                         stdout=subprocess.PIPE, text=True).stdout
for line in found["deck"]:
    assert any(
        text.split("!")[0].split() == [line["name"], "=", line["value"]] for text in printed.splitlines()), (line,
                                                                                                             printed)

text = run(2)
for part in ("relative to the expected rate:", "between pairs of ranks, GB/s per direction",
             "deck settings for this machine:", "&precision", "&parallel"):
    assert part in text, (part, text)
assert text.rstrip().endswith("/"), text
