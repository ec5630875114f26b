"""What a tool costs before it does anything: CPU time of its import, and the size of a fresh environment with it.

Import time is the least CPU time of a few processes that import the tool, less that of processes that import nothing.
Telemetry is off. `import deemster` loads a part only when it is used, so see also "from the start" in end_to_end.py.
The size is that of the packages in an environment that holds the tool and what it depends on, without pip and
setuptools. deemster is installed from this folder for it, without extras.

Usage: .venv/bin/python bench/footprint.py [runs]
"""

import subprocess
import sys

import environments
from measured_rows import OURS, other_tool, record_row, run_measured

RUNS = 5
# What each tool is imported as.
MODULES = {
    OURS: "deemster",
    "pydantic-evals": "pydantic_evals",
    "deepeval": "deepeval",
    "inspect-ai": "inspect_ai",
    "ragas": "ragas",
    "autorubric": "autorubric",
    "trulens-core": "trulens.core",
    "promptfoo": "promptfoo",
}
QUIET = {
    "DEEPEVAL_TELEMETRY_OPT_OUT": "1",
    "DEEPEVAL_DISABLE_DOTENV": "1",
    "RAGAS_DO_NOT_TRACK": "true",
    "TRULENS_OTEL_TRACING": "0",
    "PROMPTFOO_DISABLE_TELEMETRY": "1",
    "PROMPTFOO_DISABLE_UPDATE": "1",
    # Otherwise litellm, which others import, fetches its price table from the network.
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
}
# What every environment holds.
INSTALLERS = ("pip", "setuptools", "pkg_resources", "_distutils_hack", "distutils-precedence", "wheel")


def import_ms(tool, runs):
    """Milliseconds of CPU that the import takes above an empty program, at least one."""
    if tool in environments.ASKED:
        path = environments.environment(tool) / "node_modules" / tool / "package.json"
        load = f"require('module').createRequire({str(path)!r}).resolve({tool!r})"
        programs = [["node", "-e", code] for code in ("0", f"import(require('url').pathToFileURL({load}).href)")]
    else:
        programs = [[environments.python(tool), "-c", code] for code in ("pass", f"import {MODULES[tool]}")]
    empty, whole = (min(run_measured(*one, environment=QUIET).cpu_s for _ in range(runs)) for one in programs)
    # Less than a millisecond cannot be told from the noise of two processes.
    return max(1.0, (whole - empty) * 1e3)


def installed_mb(tool):
    """Megabytes of the installed packages."""
    folder = environments.environment(tool)
    if tool in environments.ASKED:
        packages = [folder / "node_modules"]
    else:
        [site] = folder.glob("lib/python*/site-packages")
        packages = [path for path in site.iterdir() if not path.name.startswith(INSTALLERS)]
    files = [file for path in packages for file in (path.rglob("*") if path.is_dir() else [path])]
    return sum(file.lstat().st_size for file in files if file.is_file() and not file.is_symlink()) / 1e6


def renew_ours():
    """Install the code of this folder again; what it depends on stays."""
    environments.environment(OURS)
    install = [environments.python(OURS), "-m", "pip", "--disable-pip-version-check", "--quiet", "install"]
    subprocess.run([*install, "--force-reinstall", "--no-deps", *environments.REQUIREMENTS[OURS]], check=True)


def main():
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else RUNS
    renew_ours()
    for tool in MODULES:
        if tool in environments.ASKED and not environments.exists(tool):
            print(f"{tool}: not measured; `python3 bench/environments.py {tool}` installs it")
            record_row("import", tool, None, "ms", note="is not installed")
            continue
        with other_tool("installed size", tool, "MB"):
            release = environments.version(tool)
            size = installed_mb(tool)
            print(f"{tool:<14} {release:<10} installed {size:>5.0f} MB", flush=True)
            record_row("installed size", tool, size, "MB", version=release)
        with other_tool("import", tool, "ms"):
            release = environments.version(tool)
            took = import_ms(tool, runs)
            print(f"{tool:<14} {release:<10} import {took:>8.0f} ms CPU", flush=True)
            record_row("import", tool, took, "ms", version=release)


if __name__ == "__main__":
    main()
