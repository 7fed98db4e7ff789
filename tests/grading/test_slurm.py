"""A class through Slurm: an array with a killed and a requeued task gives the table of no Slurm.

The cluster is one node of Debian's packages (`slurm-wlm`, `munge`) on this machine; needs root. The
larger class has more than 120 students by program: honest in forty styles, sloppy, and every
hostile one of the tests. It has the limits that `make grade` has, and takes half an hour.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

import attacks
import honest
import hostile
from assignments.grader import masters
from assignments.grader.check import solved
from test_commands import LONGEST, ROOT, few, grader, wait_for

PROGRAMS = ("slurmctld", "slurmd", "munged", "sbatch")
pytestmark = [
    pytest.mark.usefixtures("bubblewrap"),
    pytest.mark.thorough,
    pytest.mark.timeout(4 * 3600),
    pytest.mark.skipif(os.geteuid() != 0, reason="Slurm's daemons need root"),
    pytest.mark.skipif(
        not all(map(shutil.which, PROGRAMS)) and not os.environ.get("SLURM_MUST_BE_THERE"),
        reason="apt install slurm-wlm munge",
    ),
]
# MinJobAge: seconds that the controller remembers a job, longer than the whole test
CONF = """ClusterName=one
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge/munge.socket
CredType=cred/munge
SlurmctldPort=16817
SlurmdPort=16818
StateSaveLocation={folder}/ctld
SlurmdSpoolDir={folder}/d
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
SchedulerType=sched/backfill
MpiDefault=none
ReturnToService=2
JobRequeue=1
MinJobAge=86400
KillWait=2
SwitchType=switch/none
NodeName={host} NodeAddr=127.0.0.1 CPUs=2 RealMemory=7000 State=UNKNOWN
PartitionName=main Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""


@contextmanager
def one_node(folder):
    """The environment in which `sbatch` reaches a cluster of this machine alone."""
    for place in (folder, *folder.parents):
        if place.stat().st_uid == os.geteuid() and place != Path("/"):
            place.chmod(place.stat().st_mode | 0o055)  # munge refuses folders it can't pass
    for name in ("ctld", "d", "munge"):
        (folder / name).mkdir(mode=0o755)
    key, host = folder / "munge" / "munge.key", os.uname().nodename.split(".")[0]
    key.write_bytes(os.urandom(128))
    key.chmod(0o400)
    own = {"key-file": "munge.key", "socket": "munge.socket", "pid-file": "munged.pid",
           "log-file": "munged.log", "seed-file": "seed"}  # fmt: skip
    files = [f"--{option}={folder}/munge/{name}" for option, name in own.items()]
    subprocess.run(["munged", "--force", *files], check=True, timeout=LONGEST)
    (folder / "slurm.conf").write_text(CONF.format(host=host, folder=folder))
    env = {**os.environ, "SLURM_CONF": str(folder / "slurm.conf")}
    try:
        for daemon in ("slurmctld", "slurmd"):
            command = [daemon, "-f", env["SLURM_CONF"]]
            subprocess.run(command, check=True, timeout=LONGEST, env=env)
        wait_for(lambda: "idle" in asked(env, "sinfo", "-h", "-o", "%T"))
        yield env
    finally:
        for name in ("slurmd.pid", "slurmctld.pid", "munge/munged.pid"):
            if (folder / name).exists():
                os.kill(int((folder / name).read_text()), signal.SIGTERM)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with one_node(tmp_path_factory.mktemp("slurm")) as env:
        yield env


def asked(env, *command):
    options = {"capture_output": True, "text": True, "timeout": LONGEST}
    return subprocess.run(command, env=env, cwd=ROOT, **options).stdout


def submit(env, array, folder, out):
    """The number of a job array of assignments/slurm.sh."""
    given = {"HW": "laplace", "SUBMISSIONS": folder, "OUT": out, "PYTHON": sys.executable}
    export = ",".join(["ALL", "PARTS=4", *(f"{name}={value}" for name, value in given.items())])
    command = ["sbatch", f"--array={array}", "--mem=1G", f"--export={export}"]
    return re.search(r"\d+", asked(env, *command, "assignments/slurm.sh"))[0]


def states(env, job):
    """{task: state} of an array, as the controller remembers it."""
    text = asked(env, "scontrol", "--oneliner", "show", "job", job)
    found = re.findall(r"ArrayTaskId=(\d+) .*?JobState=(\w+)", text)
    return {int(task): state for task, state in found}


def running(part):
    """The grader's process of one part."""
    for process in psutil.process_iter(["cmdline"]):
        line = process.info["cmdline"] or []
        if f"{part}/4" in line and "assignments.grader" in line:
            return process
    return None


def four(folder, master):
    few(folder, master)
    points = dict.fromkeys(["ada", "ben", "kim"], hostile.FULL) | {"eve": hostile.NONE}
    return {student: (total, ()) for student, total in points.items()}


def sloppy(folder, master):
    """Right answers, handed in as they come; {student: (points, flags that must be there)}."""
    text = json.dumps(solved(master))
    files = [  # student, file, content, flags
        ("doejane", "doejane_LATE_123_4567_laplace.ipynb", text, "late"),
        ("li (124)", "li_124_4568_laplace-1.ipynb", text, "submissions of li"),
        ("li (125)", "li_125_4570_laplace.ipynb", text, "submissions of li"),
        ("Zoë Ü", "Zoë Ü_1235_assignsubmission_file_laplace.ipynb", text),
        ("utf-16", "utf-16.ipynb", text.encode("utf-16")),
        ("crlf", "crlf.ipynb", text.replace("\n", "\r\n")),
        ("007123", "007123.ipynb", text),
        ("paper", "paper.pdf", "%PDF-1.4", "renamed file", "unreadable"),
    ]
    for _, name, content, *_ in files:
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return {s: (hostile.FULL if s != "paper" else 0, flags) for s, _, _, *flags in files}


def more_than_120(folder, master):
    folder.mkdir()
    expected = hostile.write(folder, master, port=9) | attacks.write(folder, master)
    expected |= hostile.notebooks(folder, master, hostile.ENDLESS)
    expected |= attacks.write_endless(folder, master) | sloppy(folder, master)
    for name in honest.STYLES:
        notebook = solved(master)
        honest.change(notebook, name)
        (folder / f"honest {name}.ipynb").write_text(json.dumps(notebook))
        expected[f"honest {name}"] = (hostile.FULL, ())
    assert len(expected) > 120
    return expected


def complaints(out, expected):
    """What is wrong with the marks of a finished run."""
    kept = [json.loads(file.read_text())["result"] for file in (out / "results").glob("*.json")]
    results = {result["student"]: result for result in kept}
    for student, (points, flags) in expected.items():
        result = results.pop(student, {"scores": {}, "flags": ["no result"]})
        found = sum(score or 0 for score in result["scores"].values())
        if found != points or any(not any(f in g for g in result["flags"]) for f in flags):
            yield f"{student}: {found} points, not {points}, {result['flags']}, not {flags}"
    yield from (f"{student}: nobody handed this in" for student in results)


@pytest.mark.parametrize("students", [four, more_than_120])
def test_an_array_with_a_killed_and_a_requeued_task(cluster, students, tmp_path):
    """Four parts. The first is killed (FAILED, sent again), the second requeued; every mark and
    flag is as expected, and the table byte for byte that of a run without Slurm."""
    folder, out, alone = tmp_path / "in", tmp_path / "out", tmp_path / "alone"
    expected = students(folder, masters.read(ROOT / "assignments" / "laplace.md"))
    command = ["grade", "laplace", folder]
    job = submit(cluster, "1-4", folder, out)
    wait_for(lambda: running(1)).kill()
    wait_for(lambda: states(cluster, job).get(1) == "FAILED")
    wait_for(lambda: running(2))
    subprocess.run(["scontrol", "requeue", f"{job}_2"], env=cluster, check=True, timeout=LONGEST)
    again = submit(cluster, "1", folder, out)

    def finished():
        all_states = [s for t, s in states(cluster, job).items() if t != 1]
        all_states += states(cluster, again).values()
        return len(all_states) == 4 and set(all_states) == {"COMPLETED"}

    wait_for(finished, 2 * 3600)
    assert len(list((out / "slurm").glob("part-*.txt"))) == 4
    for place in (out, alone):
        grader(*command, place, "--jobs", 2, timeout=2 * 3600)
        assert list(complaints(place, expected)) == []
    assert (out / "grades.csv").read_bytes() == (alone / "grades.csv").read_bytes()
