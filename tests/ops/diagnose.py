"""diagnose on two ranks, as a script reads it. usage: diagnose.py DIAGNOSE MPIEXEC"""
import json
import subprocess
import sys

diagnose, mpiexec = sys.argv[1:]
command = [mpiexec, "--allow-run-as-root", "--oversubscribe", "-n", "2", diagnose, "--no-checks", "--json"]
found = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
assert set(found["versions"]) >= {"tern", "commit", "Kokkos"}, found
assert len(found["ranks"]) == 2 and found["ranks"][0]["total_gib"] > 0, found
rates = {rate["name"]: rate for rate in found["rates"]}
assert {"copy (read + write)", "matrix product, float", "all-reduce, float"} <= set(rates), found
assert all(0 < rate["least"] <= rate["most"] for rate in rates.values()), found
assert "checks" not in found, found
