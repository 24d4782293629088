"""Tests of the CUDA backend: on the machine's GPU if HUSH_REQUIRE_CUDA is set, otherwise in the emulator."""

import contextlib
import io
import json
import os
import pathlib
import shutil
import subprocess
import sys
import threading
import unittest
import unittest.mock

from harness import BENCH, BINARY
from keyed import KeyedTest, values

SCRIPTS = pathlib.Path(__file__).resolve().parents[2] / "scripts"
CHECK = SCRIPTS / "gpu_check"
ON_GPU = bool(os.environ.get("HUSH_REQUIRE_CUDA"))
CUDA = ["--backend", "cuda"]
# The protocols, their small parameter sets, and the bytes of a value.
PROTOCOLS = {
    "frodo": ([], 20),
    "simple": ([], 50),
    "double": ([], 2),
    "colpack-s": (["--preset", "INSECURE_COLPACK_N256"], 50),
    "colpack": (["--preset", "INSECURE_COLPACK_N256"], 50),
    "exppack-s": (["--preset", "INSECURE_PACK_N256"], 50),
    "exppack-d": (["--preset", "INSECURE_PACK_N256"], 2),
    "double-pack": (["--preset", "INSECURE_PACK_N256"], 50),
    "hybrid": (["--preset", "INSECURE_PACK_N256"], 50),
    "onion": (["--preset", "INSECURE_RING_N256"], 50),
    "tfhe": (["--preset", "INSECURE_TFHE_N256", "--form", "symbols"], 50),
}
# Protocols without random seeds for tables by index: two builds are equal.
SAME_TWICE = [protocol for protocol in PROTOCOLS if protocol not in ("onion", "tfhe")]


class CudaTest(KeyedTest):
    def setUp(self):
        super().setUp()
        self.no_gpu = dict(self.env)
        if not ON_GPU:
            self.env["HUSH_CUDA"] = "emulator"

    def small(self, protocol, *args, name=None, by="key", count=80):
        preset, size = PROTOCOLS[protocol]
        columns = [] if protocol == "frodo" else ["--columns", 20]
        return self.table(values(count, size), protocol, *preset, *columns, *args, name=name or protocol, by=by)

    def served(self, *dirs, args=()):
        """Serves tables, and returns the server's output until all are ready."""
        said = []
        with self.serve(*dirs, args=args) as (_, process):
            while sum(", ready in " in line for line in said) < len(dirs):
                said.append(process.stderr.readline())
                self.assertTrue(said[-1], said)
        return "".join(said)


class CudaLookups(CudaTest):
    def test_tables_of_both_backends_are_the_same(self):
        for protocol in SAME_TWICE:
            with self.subTest(protocol):
                one = self.small(protocol, "--backend", "cpu", name=f"{protocol}-cpu", by="index")
                other = self.small(protocol, *CUDA, name=f"{protocol}-cuda", by="index")
                self.assertEqual(self.facts(one)["epoch"], self.facts(other)["epoch"])
                for path in one.iterdir():
                    if path.name != "header.json":
                        self.assertEqual(path.read_bytes(), (other / path.name).read_bytes(), path.name)

    def test_look_ups_by_key_and_by_index(self):
        tables = []
        for protocol in PROTOCOLS:
            tables.append(self.small(protocol, *CUDA))
            tables.append(self.small(protocol, *CUDA, name=f"{protocol}-index", by="index"))
        with self.serve(*tables, args=CUDA) as (url, _):
            for protocol, (_, size) in PROTOCOLS.items():
                with self.subTest(protocol):
                    records = values(80, size)
                    found, _ = self.ask(url, "--table", protocol, "k0", "absent", "k79")
                    self.assertEqual(found, [records["k0"], None, records["k79"]])
                    found, _ = self.ask(url, "--table", f"{protocol}-index", "--index", "0", "79")
                    self.assertEqual(found, [records["k0"], records["k79"]])

    def test_clients_share_batches(self):
        protocols = ("simple", "colpack", "hybrid", "onion")
        tables = [self.small(protocol) for protocol in protocols]
        wrong = []

        def ask(url, number):
            for protocol in protocols:
                records = values(80, PROTOCOLS[protocol][1])
                wanted = [f"k{number * 10 + i}" for i in range(10)]
                found, _ = self.ask(url, "--table", protocol, *wanted, client=f"client{number}")
                if found != [records[key] for key in wanted]:
                    wrong.append((number, protocol))

        with self.serve(*tables, args=CUDA) as (url, _):
            clients = [threading.Thread(target=ask, args=(url, number)) for number in range(4)]
            for client in clients:
                client.start()
            for client in clients:
                client.join()
        self.assertEqual(wrong, [])

    def test_what_serve_says(self):
        tables = [self.small(protocol) for protocol in ("simple", "colpack")]
        said = self.served(*tables, args=CUDA)
        for line in ("simple:   database ", "colpack:   pack columns ", "colpack:   digits and masks ",
                     "simple:   batches of 64 queries ", "colpack:   in all ", "colpack: upload"):
            self.assertIn(line, said)
        for protocol in ("simple", "colpack"):
            self.assertIn(f"{protocol}: on ", said)
            self.assertRegex(said, rf"{protocol}: {protocol} from \S+ on cuda, ready in ")
        self.assertLess(said.index("simple:   in all"), said.index("simple: upload"), "told before the upload")
        # `auto` chooses CUDA; the CPU can be chosen.
        self.assertIn(" on cuda, ready in ", self.served(tables[0]))
        on_cpu = self.served(tables[0], args=["--backend", "cpu"])
        self.assertIn(" on cpu, ready in ", on_cpu)
        self.assertNotIn("database", on_cpu)


class CudaBenchmarks(CudaTest):
    """Tests of the GPU benchmarks in the emulator, so that the rare run on a GPU does not fail early."""

    STEPS = ("lwe_fold: queries", "lwe_fold, Wgmma", "lwe_fold, Mma", "lwe_fold, no tensor cores", "pack, Imad", "pack, Mma",
             "pack, Hopper", "pack, nothing turned over", "lwe_fold", "reinterpret_lwe, an answer", "reinterpret_lwe, a hint",
             "pack_columns", "rgsw_power_fold", "pack", "rlwe_fold", "symbol_fold", "chain_hint", "lift_hint")
    # Steps that are measured for each parameter set.
    RING_STEPS = ("expand", "rgsw_fold", "respond")
    # On one device alone, and on two.
    HOW = ("", ", 2 in flight", ", 2 copies", ", 2 shares", ", 2 shares, 2 in flight")
    PROTOCOLS = ("colpack", "colpack-s", "simple", "hybrid", "exppack-s", "onion", "double-pack", "exppack-d", "double")

    @unittest.skipIf(ON_GPU, "make gpu-check is the benchmark")
    def test_the_check_of_a_gpu(self):
        out = self.dir / "check"
        command = [sys.executable, CHECK, "--emulated", "--carry", BINARY.parent, "--out", out]
        run = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        summary = json.loads((out / "gpu-check.json").read_text())
        self.assertEqual([stage["stage"] for stage in summary["stages"]],
                         ["doctor", "floors", "bench-thresholds", "answers-1M", "answers-1M, tfhe", "answers-1M, tfhe --columns 64", "bench-steps"])
        rows = {name: [row for row in summary["rows"] if row["stage"] == name and row["name"] != "run"] for name in
                ("floors", "bench-steps", "bench-thresholds", "answers-1M", "answers-1M, tfhe")}
        self.assertTrue(all(row["rate"] > 0 for row in rows["floors"]))
        names = [(row["name"], row.get("protocol")) for row in rows["bench-steps"]]
        for step in self.STEPS:
            self.assertTrue(any(name == step for name, _ in names), step)
        for step in self.RING_STEPS:
            of = {protocol for name, protocol in names if name.startswith(step)}
            self.assertTrue("onion" in of and of & {"hybrid", "exppack-s"}, step)
        # The thresholds are stored where programs that open such a device find them.
        names = ("mma_from", "hopper_from")
        [found] = [row for row in rows["bench-thresholds"] if "mma_from" in row]
        kept = json.loads((out / "cache/hushdb/gpus/emulator.json").read_text())
        self.assertEqual(kept["thresholds"], {name: found[name] for name in names})
        self.assertRegex(run.stdout, r"(?m)^mma from \d+ queries, wgmma from \d+$")
        for protocol in self.PROTOCOLS:
            measured = [row for row in rows["answers-1M"] if row["protocol"] == protocol]
            self.assertEqual([(row["name"], row["batch"]) for row in measured],
                             [(f"answer{how}", batch) for how in self.HOW for batch in (1, 2)])
            self.assertRegex(run.stdout, rf"(?m)^answer +{protocol} ")
        self.assertEqual([(row["name"], row["batch"]) for row in rows["answers-1M, tfhe"]],
                         [(f"answer, {form}{how}", batch) for form in ("on the fly", "stored") for how in self.HOW for batch in (1, 2)])
        self.assertRegex(run.stdout, r"(?m)^answers-1M +passed ")

    @unittest.skipIf(ON_GPU, "it may fit")
    def test_a_table_that_does_not_fit_is_a_row(self):
        command = [BENCH, "gpu-answers", "--size", "5G", "--protocol", "hybrid", "--json"]
        run = subprocess.run(command, capture_output=True, text=True, timeout=120, env=self.env, check=False)
        self.assertEqual(run.returncode, 0, run.stderr)
        row = json.loads(run.stdout.splitlines()[-1])
        self.assertRegex(row["skipped"], r"^needs \d+\.\d\d GiB .*, 3\.94 GiB are free on emulator$")
        self.check()
        import table
        self.assertRegex(table.line(row), r"^answer +hybrid +5\.00 +- skipped: needs ")

    def test_what_fails_is_a_row(self):
        # A huge table with one column has more rows than any protocol accepts.
        command = [BENCH, "gpu-answers", "--size", "4096G", "--columns", "1", "--json"]
        run = subprocess.run(command, capture_output=True, text=True, timeout=120, env=self.env, check=False)
        _, *rows = map(json.loads, run.stdout.splitlines())
        self.assertEqual([row["protocol"] for row in rows], list(self.PROTOCOLS))
        self.assertEqual(run.returncode, 2)
        self.assertIn(rows[0]["skipped"], run.stderr)

    def check(self, emulated=True):
        sys.path.insert(0, str(CHECK))
        self.addCleanup(sys.path.remove, str(CHECK))
        import check
        made = check.Check(self.dir, self.dir, 60, emulated)
        self.addCleanup(made.close)
        return made

    def test_figures_of_papers_are_beside_ours(self):
        self.check()
        import table
        row = {"stage": "answers-1G", "protocol": "onion", "batch": 32}
        self.assertEqual(table.theirs(row), "VIPIR 516.6 /s, GPIR 709.8 /s")
        self.assertEqual(table.theirs({**row, "stage": "answers-2G, onion"}), "GPIR 473.6 /s")
        self.assertEqual(table.theirs({**row, "protocol": "hybrid", "stage": "answers-64G", "batch": 1}), "VIPIR 33.5 ms")
        ppir = {**row, "protocol": "tfhe", "batch": 1}
        for size, expected in (("8G", "PPIR 16690 ms"), ("256M", "PPIR 530 ms"), ("2G", "")):
            self.assertEqual(table.theirs({**ppir, "stage": f"answers-{size}, tfhe"}), expected)
        for other in ({"stage": "bench-steps"}, {"stage": "answers-1M"}, {"batch": 8}):
            self.assertEqual(table.theirs({**row, **other}), "")

    def test_the_gpu_is_watched(self):
        program = self.dir / "nvidia-smi"
        program.write_text("#!/bin/sh\ncase \"$*\" in *--loop*) ;; *) echo a GPU; exit ;; esac\n"
                           "while sleep 0.1; do echo '1980, 2619, 650.5, 60, [N/A]'; done\n")
        program.chmod(0o755)
        with unittest.mock.patch.dict(os.environ, PATH=f"{self.dir}:{os.environ['PATH']}"):
            check = self.check(emulated=False)
        with contextlib.redirect_stdout(io.StringIO()):
            check.run("a stage", ["sleep", "1"], 10)
        seen = check.stages[0]["gpu"]
        self.assertEqual(seen["watts"], {"least": 650.5, "mean": 650.5, "most": 650.5})
        self.assertEqual(seen["sm_mhz"]["most"], 1980)
        self.assertNotIn("memory_mib", seen, "what is not known is left out")

    def test_what_cannot_be_killed_does_not_end_the_check(self):
        check = self.check()

        class Stuck(subprocess.Popen):
            def wait(self, timeout=None):
                if timeout is None:
                    return super().wait()
                raise subprocess.TimeoutExpired(self.args, timeout)

        with contextlib.redirect_stdout(io.StringIO()):
            with unittest.mock.patch("subprocess.Popen", Stuck):
                self.assertFalse(check.run("stuck", ["sleep", "60"], 10))
            self.assertTrue(check.run("next", ["true"], 10))
        self.assertEqual(check.stages[0]["why"], f"not done after {10 * check.slower} s, nor to be killed: it waits in the driver")

    # A stand-in for a test binary: it crashes in its third test, and its second test also fails alone.
    TESTS = """#!/bin/sh
case "$*" in
*--list*) printf 'a::one: test\\nb: test\\nc: test\\nd: test\\n\\n4 tests, 0 benchmarks\\n' ;;
"--exact b "*) exit 101 ;;
--exact*) ;;
*) printf 'test a::one ... ok\\ntest b ... FAILED\\ntest c ... '; exit 134 ;;
esac
"""

    def test_what_did_not_pass_runs_again(self):
        program = self.dir / "steps"
        program.write_text(self.TESTS)
        program.chmod(0o755)
        check = self.check()
        with contextlib.redirect_stdout(io.StringIO()):
            check.suite("steps", 10, {}, 0)
            check.suite("steps", 10, {}, check.left(0))
        stages = [(stage["stage"], stage["passed"]) for stage in check.stages]
        once = [("steps", False), ("steps: b", False), ("steps: c", True), ("steps: d", True)]
        self.assertEqual(stages, [*once, ("steps", False)])
        self.assertEqual(check.stages[-1]["why"], "no time left")


class CudaChoices(CudaTest):
    def doctor(self, env):
        text = self.hushdb("doctor", env=env)
        report = self.hushdb("doctor", "--json", env=env)
        self.assertEqual((text.returncode, report.returncode), (0, 0), text.stderr + report.stderr)
        return text.stdout, json.loads(report.stdout)["gpu"]

    def test_a_backend_that_there_is_not(self):
        table, out = self.small("simple"), self.dir / "out"
        for name in ("gpu", "CUDA", ""):
            for command in (["serve", table], ["build", self.jsonl({"a": "b"}), "--out", out]):
                line = self.fails(*command, "--backend", name)
                self.assertIn("use auto, cpu or cuda", line)
        self.assertFalse(out.exists())

    def test_a_value_of_the_variable_that_there_is_not(self):
        table = self.small("simple")
        env = {**self.env, "HUSH_CUDA": "toaster"}
        for backend in ("auto", "cuda"):
            line = self.fails("serve", table, "--backend", backend, env=env)
            self.assertIn("HUSH_CUDA is 'toaster'", line)
        text, gpu = self.doctor(env)
        self.assertIn("toaster", gpu["unused_because"])
        self.assertIn(f"backend auto  cpu: {gpu['unused_because']}", text)

    def test_the_doctor_knows_the_device(self):
        text, gpu = self.doctor(self.env)
        self.assertIsNone(gpu["unused_because"])
        self.assertIn("backend auto  cuda", text)
        first = gpu["devices"][0]
        self.assertIn(f"GPU 0         {first['name']}, compute capability {first['capability']}", text)
        self.assertGreater(first["free_bytes"]["Ok"], 0)
        if not ON_GPU:
            self.assertEqual((first["name"], first["capability"]), ("emulator", "9.0"))

    def test_a_table_on_two_devices(self):
        if ON_GPU:
            self.skipTest("its memory cannot be chosen")
        self.env["HUSH_CUDA"] = "emulator:2:1"
        text, gpu = self.doctor(self.env)
        self.assertEqual([device["memory_bytes"] for device in gpu["devices"]], [1 << 20] * 2)
        self.assertIn("GPU 1         emulator", text)
        self.assertIn("in parts into that of several", text)
        plan = self.hushdb("plan", "--records", 5000, "--size", 200, *CUDA)
        self.assertRegex(plan.stdout, "(?m)^here: GPU 1, emulator, compute capability 9.0, .* free$")
        records = values(5000, 200)
        table = self.table(records, "simple", "--columns", 500, by="index")
        said = self.served(table, args=CUDA)
        for part in (1, 2):
            self.assertIn(f"on emulator (part {part} of 2), ", said)
        self.assertIn(" on cuda:0+1, ready in ", said)
        with self.serve(table, args=CUDA) as (url, _):
            found, _ = self.ask(url, "--index", "0", "4999")
            self.assertEqual(found, [records["k0"], records["k4999"]])

    def test_a_machine_without_a_gpu(self):
        _, gpu = self.doctor(self.no_gpu)
        reason = gpu["unused_because"]
        if reason is None:
            self.skipTest("the machine has a GPU")
        text, _ = self.doctor(self.no_gpu)
        self.assertIn(f"backend auto  cpu: {reason}", text)
        table = self.small("simple")
        for command in (["serve", table], ["build", self.jsonl({"a": "b"}), "--out", self.dir / "out"]):
            line = self.fails(*command, *CUDA, env=self.no_gpu)
            self.assertEqual(line, f"error: --backend cuda is not available: {reason}")
        # With a free choice, the CPU computes. No line mentions a GPU unless an unusable one exists.
        source = self.jsonl(values(50, 20))
        silent = reason.startswith(("no NVIDIA driver", "this program was built without"))
        built = self.hushdb("build", source, "--key", "k", "--out", self.dir / "built", env=self.no_gpu)
        self.assertEqual((built.returncode, "GPU" in built.stderr), (0, not silent), built.stderr)
        self.env = self.no_gpu
        self.assertIn(" on cpu, ready in ", self.served(self.dir / "built"))

    def test_a_driver_that_is_too_old(self):
        compiler = shutil.which("g++")
        if compiler is None:
            self.skipTest("there is no g++ to make a driver with")
        # A stand-in for a driver: it starts, has CUDA 12.4, and sees no GPU.
        driver = """extern "C" {
            int cuInit(unsigned) { return 0; }
            int cuDriverGetVersion(int* version) { *version = 12040; return 0; }
            int cuDeviceGetCount(int* count) { *count = 0; return 0; }
        }"""
        subprocess.run([compiler, "-shared", "-fPIC", "-xc++", "-", "-o", self.dir / "libcuda.so"], input=driver.encode(),
                       check=True)
        env = {**self.no_gpu, "LD_LIBRARY_PATH": str(self.dir)}
        _, gpu = self.doctor(env)
        if "without GPU support" in gpu["unused_because"]:
            self.skipTest("the program looks for no driver")
        self.assertIn("CUDA 12.4; CUDA 13.0 is needed", gpu["unused_because"])
        line = f"no GPU is used: {gpu['unused_because']}\n"
        source, out = self.jsonl(values(50, 20)), self.dir / "built"
        built = self.hushdb("build", source, "--key", "k", "--out", out, env=env)
        self.assertEqual((built.returncode, built.stderr.count(line)), (0, 1), built.stderr)
        self.env = env
        said = self.served(out)
        self.assertEqual((said.count(line), " on cpu, ready in " in said), (1, True), said)
        self.assertNotIn("no GPU", self.served(out, args=["--backend", "cpu"]))
        self.assertIn("--backend cuda is not available", self.fails("serve", out, *CUDA, env=env))
