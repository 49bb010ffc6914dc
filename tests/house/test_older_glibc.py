"""What is linked with the stand-ins of tools/older_glibc.py wants no newer C library, and runs with this one."""

import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[2] / "tools" / "older_glibc.py"
PROGRAM = """
#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
static void* square(void* x) { *(double*)x = pow(*(double*)x, 2.0); return NULL; }
static void last(void) { puts("end"); }
int main(int argc, char** argv) {
  double x = argc + 2.0;
  pthread_t thread;
  atexit(last);
  if (pthread_create(&thread, NULL, square, &x) || pthread_join(thread, NULL)) return 1;
  printf("%g %g %d\\n", x, hypot(x, 12.0), dlsym(dlopen(NULL, RTLD_NOW), "no such") == NULL);
  return 0;
}
"""


@pytest.mark.skipif(
    platform.libc_ver()[0] != "glibc" or not shutil.which("cc") or not shutil.which("objdump"),
    reason="links with glibc by cc, and looks at the result by objdump",
)
def test_a_program_wants_no_newer_version(tmp_path):
    subprocess.run([sys.executable, TOOL, "2.28", tmp_path / "older"], check=True)
    (tmp_path / "program.c").write_text(PROGRAM)
    made = ["cc", "-O1", "-o", tmp_path / "program", tmp_path / "program.c", "-L", tmp_path / "older", "-lm"]
    subprocess.run(made, check=True)
    listed = subprocess.run(["objdump", "-T", tmp_path / "program"], capture_output=True, text=True, check=True).stdout
    versions = {tuple(map(int, v.split("."))) for v in re.findall(r"GLIBC_([0-9.]+)", listed)}
    assert versions and max(versions) <= (2, 28)
    done = subprocess.run([tmp_path / "program"], capture_output=True, text=True, check=True)
    assert done.stdout == "9 15 1\nend\n"
