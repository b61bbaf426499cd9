"""Training runs of one deck with several settings, some at once on one device; for recipe.py, refinement.py and gsm8k.py."""
import concurrent.futures, contextlib, math, os, pathlib, re, shutil, statistics, subprocess, tempfile


def as_options(settings):
    """{'group.name': value} as --set options; text is quoted."""
    options = []
    for key, value in settings.items():
        text = isinstance(value,
                          (str, pathlib.Path)) and not re.fullmatch(r"[-+0-9.,eE]+|[TF]|\.\w+\.|'.*'", str(value))
        options += ["--set", f"{key}='{value}'" if text else f"{key}={value}"]
    return options


def call(command, ends=(0,), threads=2, device=None):
    """What a command printed; RuntimeError if its exit code is not one of `ends`. `device`: the only GPU it sees."""
    only = {} if device is None else {"CUDA_VISIBLE_DEVICES": str(device)}
    done = subprocess.run(command, text=True, errors="replace", stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          env=dict(os.environ, OMP_NUM_THREADS=str(threads), OMP_PROC_BIND="false", **only))
    if done.returncode not in ends:
        raise RuntimeError(f"{' '.join(map(str, command))} ended with {done.returncode}:\n{done.stdout[-3000:]}")
    return done.stdout


def train(trainer, deck, directory, settings, ends=(0,), threads=2, device=None, keep=False):
    """Path of the run's metrics.jsonl. A run that is done is not repeated; checkpoints are removed unless `keep`."""
    directory = pathlib.Path(directory)
    if not (directory / "done").exists():
        shutil.rmtree(directory, ignore_errors=True)
        call([trainer, str(deck), "--fresh", *as_options(dict(settings, **{"output.directory": directory}))], ends,
             threads, device)
        if not keep:
            shutil.rmtree(directory / "checkpoints", ignore_errors=True)
        (directory / "done").touch()
    return directory / "metrics.jsonl"


@contextlib.contextmanager
def shared_devices(at_once):
    """NVIDIA's Multi-Process Service, if it is there, for several runs on a GPU: docs/troubleshooting.md, "GPUs and MPI"."""
    control = shutil.which("nvidia-cuda-mps-control")
    if at_once == 1 or not control or "CUDA_MPS_PIPE_DIRECTORY" in os.environ:
        yield
        return
    with tempfile.TemporaryDirectory() as folder:
        own = {"CUDA_MPS_PIPE_DIRECTORY": folder, "CUDA_MPS_LOG_DIRECTORY": folder}
        if subprocess.run([control, "-d"], env=dict(os.environ, **own)).returncode != 0:
            yield
            return
        os.environ.update(own)
        try:
            yield
        finally:
            subprocess.run([control], input="quit -t 10\n", text=True)
            for name in own:
                del os.environ[name]


def all_of(jobs, at_once):
    """{key: result} of {key: function}, `at_once` of them at a time, started in the order given."""
    with shared_devices(at_once), concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        futures = {key: pool.submit(job) for key, job in jobs.items()}
        return {key: future.result() for key, future in futures.items()}


def interval(values):
    """Half of the 95% interval of the mean (Student's t)."""
    t = {2: 12.71, 3: 4.30, 4: 3.18, 5: 2.78, 6: 2.57, 7: 2.45, 8: 2.36, 9: 2.31, 10: 2.26}
    n = len(values)
    return t.get(n, 2.0) * statistics.stdev(values) / math.sqrt(n) if n > 1 else math.nan
