"""Runs jobs of CI systems as their systems would: the steps of an action or of a workflow for GitHub, the script of a component for
GitLab. Prints one object of JSON: `code` of the step that failed, or 0; `steps`, what each printed; `outputs`; `uses`, the actions of
others with what they were given, which are not run.

    steps.py action ACTION.YML INPUTS          INPUTS: an object of JSON
    steps.py workflow WORKFLOW.YML ACTION.YML INPUTS    every job; a step that uses `*/streamsan@*` runs ACTION.YML with INPUTS added
    steps.py component TEMPLATE.YML INPUTS
    steps.py install RELEASES [VERSION]        scripts/ci/install against a server of the folder RELEASES, as GitHub's

Owns as much of the expressions of both systems as the files use: anything else ends with an error.
"""

import functools
import http.server
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading

from ruamel.yaml import YAML

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Job:
    """What the steps of a job share."""

    def __init__(self, context):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="job-"))
        self.environment = dict(os.environ, RUNNER_TEMP=str(self.folder))
        self.context, self.steps, self.uses, self.code = context, [], [], 0

    def value(self, expression):
        """An expression of GitHub's: contexts, `always()`, `==`, `!=`, `&&`."""
        tokens = re.findall(r"'[^']*'|[\w.-]+(?:\(\))?|[!=]=|&&|\S", expression)
        words = []
        for token in tokens:
            if token == "always()":
                words.append("True")
            elif token in ("==", "!="):
                words.append(token)
            elif token == "&&":
                words.append("and")
            elif token[0] == "'":
                words.append(repr(token[1:-1]))
            else:
                words.append(repr(functools.reduce(lambda at, name: at.get(name, "") if isinstance(at, dict) else "", token.split("."), self.context)))
        return eval(" ".join(words), {"__builtins__": {}})  # of constants and operators only

    def text(self, text):
        text = str(text).lower() if isinstance(text, bool) else text
        return re.sub(r"\$\{\{(.*?)\}\}", lambda found: str(self.value(found[1].strip())), str(text))

    def run(self, shell, script, environment, folder):
        files = {name: self.folder / name.lower() for name in ("GITHUB_OUTPUT", "GITHUB_PATH", "GITHUB_ENV")}
        for file in files.values():
            file.write_text("")
        given = dict(self.environment, **{name: str(file) for name, file in files.items()}, **environment)
        ended = subprocess.run(shell + [script], env=given, cwd=folder, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        self.steps.append(ended.stdout + ended.stderr)
        self.environment["PATH"] = ":".join(files["GITHUB_PATH"].read_text().split("\n")[:-1] + [self.environment["PATH"]])
        return ended.returncode, dict(line.split("=", 1) for line in files["GITHUB_OUTPUT"].read_text().splitlines())

    def step(self, step, own=None):
        """A step, unless one before it has failed."""
        condition = str(step.get("if", ""))
        if (self.code and "always()" not in condition) or (condition and not self.value(condition)):
            return
        if "uses" in step:
            given = {name: self.text(value) for name, value in step.get("with", {}).items()}
            if own and re.search(r"/streamsan@", step["uses"]):
                self.code = self.code or own(given)
            else:
                self.uses.append({"uses": step["uses"], "with": given})
            return
        environment = {name: self.text(value) for name, value in step.get("env", {}).items()}
        environment["GITHUB_ACTION_PATH"] = str(ROOT)
        code, outputs = self.run(["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c"], self.text(step["run"]), environment, self.text(step.get("working-directory", ".")))
        self.context["steps"][step.get("id", "")] = {"outputs": outputs}
        self.code = self.code or code


def action(path, given, environment=None):
    made = YAML(typ="safe").load(pathlib.Path(path).read_text())
    unknown = set(given) - set(made["inputs"])
    assert not unknown, f"{path} has no inputs {unknown}"
    inputs = {name: str(given.get(name, about.get("default", ""))) for name, about in made["inputs"].items()}
    missing = [name for name, about in made["inputs"].items() if about.get("required") and name not in given]
    assert not missing, f"{path} needs {missing}"
    github = {"server_url": "https://github.example", "action_repository": "me/streamsan"}
    job = Job({"inputs": inputs, "steps": {}, "github": github})
    job.environment.update(environment or {})
    for step in made["runs"]["steps"]:
        job.step(step)
    outputs = {name: job.text(about["value"]) for name, about in made["outputs"].items()}
    return {"code": job.code, "steps": job.steps, "outputs": outputs, "uses": job.uses}


def workflow(path, used, added):
    found = {"code": 0, "steps": [], "outputs": {}, "uses": []}
    for made in YAML(typ="safe").load(pathlib.Path(path).read_text())["jobs"].values():
        job = Job({"steps": {}, "env": made.get("env", {}), "github": {}})
        job.environment.update(made.get("env", {}))

        def own(given):
            ran = action(used, {**given, **added}, job.environment)
            job.steps += ran["steps"]
            job.uses += ran["uses"]
            return ran["code"]

        for step in made["steps"]:
            job.step(step, own)
        found["code"] = found["code"] or job.code
        found["steps"] += job.steps
        found["uses"] += job.uses
    return found


def component(path, given):
    spec, text = pathlib.Path(path).read_text().split("\n---\n")
    inputs = YAML(typ="safe").load(spec)["spec"]["inputs"]
    unknown = set(given) - set(inputs)
    assert not unknown, f"{path} has no inputs {unknown}"

    def put(name):
        value = given[name] if name in given else inputs[name]["default"]
        value = str(value).lower() if isinstance(value, bool) else str(value)
        return value.replace("\\", "\\\\").replace('"', '\\"')

    text = re.sub(r"\$\[\[ inputs\.([\w-]+) \]\]", lambda found: put(found[1]), text)
    jobs = YAML(typ="safe").load(text)
    (name, made), = jobs.items()
    job = Job({})
    for variable, value in made["variables"].items():
        job.environment[variable] = str(value["value"] if isinstance(value, dict) else value)
    job.code, _ = job.run(["sh", "-c"], "\n".join(made["script"]), {}, ".")
    # The whole as GitLab sees it, for its schema.
    pathlib.Path("job.yml").write_text(text)
    return {"code": job.code, "steps": job.steps, "outputs": made["artifacts"], "uses": [], "name": name}


def install(releases, version="latest"):
    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *args):
            super().__init__(*args, directory=releases)

        def do_HEAD(self):
            if self.path == "/releases/latest":
                self.send_response(302)
                self.send_header("Location", "/releases/tag/" + sorted(os.listdir(releases + "/releases/download"))[-1])
                self.end_headers()
            else:
                self.send_response(200 if self.path.startswith("/releases/tag/") else 404)
                self.end_headers()

        def log_message(self, *args):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    job = Job({})
    given = {"INPUT_RELEASES": "http://127.0.0.1:%d/releases" % server.server_port, "INPUT_VERSION": version, "no_proxy": "127.0.0.1"}
    code, _ = job.run(["bash", "-c"], f"exec '{ROOT}/scripts/ci/install'", given, ".")
    server.shutdown()
    return {"code": code, "steps": job.steps, "outputs": {"path": job.environment["PATH"].split(":")[0]}, "uses": []}


def main(verb, *words):
    if verb == "action":
        result = action(words[0], json.loads(words[1]))
    elif verb == "workflow":
        result = workflow(words[0], words[1], json.loads(words[2]))
    elif verb == "component":
        result = component(words[0], json.loads(words[1]))
    else:
        result = install(*words)
    print(json.dumps(result))


main(*sys.argv[1:])
