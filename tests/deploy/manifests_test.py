"""The files in deploy/ parse, and what they refer to exists: in each other, and on the command lines of the programs.

Usage: manifests_test.py RESBM STAGE_SERVER, beside deploy/
"""

import json
import pathlib
import re
import shlex
import subprocess
import sys
import unittest

import yaml

RESBM, STAGE_SERVER = sys.argv[1:3]
del sys.argv[1:3]

DEPLOY = pathlib.Path("deploy")
KUBERNETES = DEPLOY / "kubernetes"


def options(*command):
    text = subprocess.run([*command, "--help"], check=True, capture_output=True, text=True).stdout
    return set(re.findall(r"--[a-z][a-z-]*", text))


OPTIONS = {"stage_server": options(STAGE_SERVER), "resbm train": options(RESBM, "train")}


def words(command):
    """Of a command that may be a text or a list; --a=b is two."""
    parts = shlex.split(command) if isinstance(command, str) else command
    return [word for part in parts for word in (part.split("=", 1) if part.startswith("--") else [part])]


def after(command, option):
    parts = words(command)
    return parts[parts.index(option) + 1]


def is_part(some, all_of):
    return all(all_of.get(key) == value for key, value in some.items())


class Case(unittest.TestCase):
    def check_options(self, program, command):
        used = {word for word in words(command) if word.startswith("--")}
        self.assertTrue(used)
        self.assertLessEqual(used, OPTIONS[program], program)

    def check_listens_to_others(self, command):
        self.check_options("stage_server", command)
        self.assertEqual(after(command, "--listen"), "0.0.0.0:50051")
        self.assertIn("--insecure", words(command))

    def check_metrics(self, command):
        self.assertEqual(after(command, "--metrics-listen"), "0.0.0.0:9464")
        self.assertIn("--insecure", words(command))


class Compose(Case):
    def load(self, *names):
        """As docker compose lays one file over the other: a command is replaced, mappings are merged."""
        result = {}
        for name in names:
            text = re.sub(r"\$\{[A-Z_0-9]+:-([^}]*)\}", r"\1", (DEPLOY / name).read_text())
            for section, entries in yaml.safe_load(text).items():
                if section.startswith("x-"):
                    continue  # settings that services share
                for key, value in entries.items():
                    result.setdefault(section, {}).setdefault(key, {}).update(value)
        return result

    def setUp(self):
        self.files = {"docker-compose.yml": ()}
        for path in DEPLOY.glob("docker-compose.*.yml"):
            self.files[path.name] = ("docker-compose.yml",)
        self.assertGreaterEqual(len(self.files), 3)

    def test_every_image_is_one_that_is_built(self):
        stages = re.findall(r"^FROM .* AS ([a-z-]+)$", (DEPLOY / "docker/Dockerfile").read_text(), re.M)
        built = re.search(r'else images=\(([^)]*)\)', (DEPLOY / "images.sh").read_text())[1].split()
        self.assertEqual(set(built), set(stages) - {"package"})
        for name, below in self.files.items():
            for service, settings in self.load(*below, name)["services"].items():
                if "profiles" in settings:
                    continue  # of a registry, for those who ask for it
                self.assertIn(settings["image"], {f"resbm/{image}:latest" for image in built}, service)

    def test_prometheus_reads_every_stage_and_the_coordinator(self):
        settings = yaml.safe_load((DEPLOY / "prometheus/prometheus.yml").read_text())
        targets = {t for job in settings["scrape_configs"] for c in job["static_configs"] for t in c["targets"]}
        for name, below in self.files.items():
            services = self.load(*below, name)["services"]
            watched = {s: settings["command"] for s, settings in services.items()
                       if settings["image"] in ("resbm/stage-server:latest", "resbm/coordinator:latest")}
            self.assertEqual(targets, {service + ":9464" for service in watched})
            for command in watched.values():
                self.check_metrics(command)
        mounted = {v.split(":")[1] for v in services["prometheus"]["volumes"]}
        self.assertLessEqual({"/etc/prometheus/prometheus.yml", "/etc/prometheus/" + settings["rule_files"][0]}, mounted)

    def test_grafana_has_its_dashboard_and_a_source_that_is_there(self):
        services = self.load("docker-compose.yml")["services"]
        mounted = dict(v.split(":")[:2] for v in services["grafana"]["volumes"])
        source = yaml.safe_load((DEPLOY / "grafana/datasource.yml").read_text())["datasources"][0]
        self.assertEqual(source["url"], "http://prometheus:9090")
        folder = yaml.safe_load((DEPLOY / "grafana/dashboards.yml").read_text())["providers"][0]["options"]["path"]
        self.assertEqual(mounted["./grafana/resbm.json"], folder + "/resbm.json")
        self.assertEqual(mounted["./grafana/resbm.json"],
                         services["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"])
        dashboard = json.loads((DEPLOY / "grafana/resbm.json").read_text())
        panels = [p for p in dashboard["panels"] if p["type"] != "row"]
        self.assertGreater(len(panels), 20)
        for panel in panels:
            self.assertEqual(panel["datasource"]["uid"], source["uid"], panel["title"])
            self.assertTrue(panel["targets"], panel["title"])
        self.assertEqual(len({p["id"] for p in dashboard["panels"]}), len(dashboard["panels"]))

    def test_stages_are_asked_whether_they_are_ready_but_their_image_whether_they_live(self):
        services = self.load("docker-compose.yml")["services"]
        for stage in ("stage-0", "stage-1"):
            self.assertEqual(services[stage]["healthcheck"]["test"],
                             ["CMD", "health_probe", "127.0.0.1:50051", "--service", "ready"])
        image = re.search(r"^HEALTHCHECK .*CMD (.*)$", (DEPLOY / "docker/Dockerfile").read_text(), re.M)[1]
        self.assertEqual(json.loads(image), ["health_probe", "127.0.0.1:50051"])

    def test_the_coordinator_names_every_stage_and_waits_for_it(self):
        for name, below in self.files.items():
            services = self.load(*below, name)["services"]
            stages = sorted(s for s, settings in services.items() if settings["image"] == "resbm/stage-server:latest")
            command = services["coordinator"]["command"]
            self.check_options("resbm train", command)
            self.assertEqual(after(command, "--stages").split(","), [s + ":50051" for s in stages], name)
            for stage in stages:
                self.check_listens_to_others(services[stage]["command"])
            for service, condition in services["coordinator"]["depends_on"].items():
                self.assertIn(service, services)
                self.assertIn(condition["condition"], ("service_healthy", "service_started"))
        waited_for = self.load("docker-compose.yml")["services"]["coordinator"]["depends_on"]
        self.assertEqual(waited_for, {s: {"condition": "service_healthy"} for s in ("stage-0", "stage-1")})

    def test_the_slow_link_is_where_the_stage_before_it_dials(self):
        services = self.load("docker-compose.yml", "docker-compose.slow.yml")["services"]
        self.assertEqual(after(services["stage-1"]["command"], "--advertise"), "slow-link:50051")
        command = services["slow-link"]["command"]
        self.assertEqual(after(command, "--listen"), "0.0.0.0:50051")
        self.assertEqual(after(command, "--to"), "stage-1:50051")

    def test_every_network_and_volume_is_declared_and_every_file_is_there(self):
        for name, below in self.files.items():
            content = self.load(*below, name)
            for service, settings in content["services"].items():
                self.assertLessEqual(set(settings["networks"]), set(content["networks"]), service)
                for volume in settings.get("volumes", []):
                    source = volume.split(":")[0]
                    if source.startswith("./"):
                        self.assertTrue((DEPLOY / source).is_file(), source)
                    elif not source.startswith("/"):
                        self.assertIn(source, content["volumes"])


class Kubernetes(Case):
    def setUp(self):
        self.base = yaml.safe_load((KUBERNETES / "base/kustomization.yaml").read_text())
        self.objects = {}
        for name in self.base["resources"]:
            for document in yaml.safe_load_all((KUBERNETES / "base" / name).read_text()):
                key = document["kind"], document["metadata"]["name"]
                self.assertNotIn(key, self.objects)
                self.objects[key] = document
        self.stages = self.objects["StatefulSet", "resbm-stage"]["spec"]
        self.train = self.objects["Job", "resbm-train"]["spec"]

    def pod_labels(self):
        return [o["spec"]["template"]["metadata"]["labels"] for o in self.objects.values() if "template" in o["spec"]]

    def test_every_file_of_the_folder_is_used(self):
        files = {path.name for path in (KUBERNETES / "base").glob("*.yaml")} - {"kustomization.yaml"}
        self.assertEqual(set(self.base["resources"]), files)

    def test_the_coordinator_names_every_stage_as_the_cluster_does(self):
        container = self.train["template"]["spec"]["containers"][0]
        self.assertEqual(container["args"][0], "train")
        self.check_options("resbm train", container["args"])
        self.check_metrics(container["args"])
        service = self.stages["serviceName"]
        self.assertEqual(after(container["args"], "--stages").split(","),
                         [f"resbm-stage-{n}.{service}:50051" for n in range(self.stages["replicas"])])

    def test_the_headless_service_gives_the_stages_their_names(self):
        service = self.objects["Service", self.stages["serviceName"]]["spec"]
        self.assertEqual(service["clusterIP"], "None")
        self.assertTrue(is_part(service["selector"], self.stages["template"]["metadata"]["labels"]))

    def test_every_selector_finds_pods(self):
        def selectors(node):
            if isinstance(node, dict):
                for key, value in node.items():
                    if key == "matchLabels":
                        yield value
                    yield from selectors(value)
            elif isinstance(node, list):
                for value in node:
                    yield from selectors(value)

        found = [s for o in self.objects.values() for s in selectors(o["spec"])]
        self.assertGreaterEqual(len(found), 5)
        for selector in found:
            if selector == {"app.kubernetes.io/name": "prometheus"}:
                continue  # the cluster's own
            self.assertTrue(any(is_part(selector, labels) for labels in self.pod_labels()), selector)

    def test_probes_ask_the_port_that_the_stage_server_listens_on(self):
        container = self.stages["template"]["spec"]["containers"][0]
        self.check_listens_to_others(container["args"])
        ports = {port["name"]: port["containerPort"] for port in container["ports"]}
        self.assertEqual(ports, {"grpc": 50051, "metrics": 9464})
        self.check_metrics(container["args"])
        for probe in ("startupProbe", "livenessProbe"):
            self.assertEqual(container[probe]["grpc"], {"port": 50051}, "whether it lives")
        self.assertEqual(container["readinessProbe"]["grpc"], {"port": 50051, "service": "ready"})
        for port in self.objects["Service", "resbm-stage"]["spec"]["ports"]:
            self.assertIn(port["targetPort"], ports)
        for rule in self.objects["NetworkPolicy", "resbm-stage"]["spec"]["ingress"]:
            for port in rule["ports"]:
                self.assertIn(port["port"], ports)

    def test_pods_say_where_their_metrics_are(self):
        for spec in (self.stages, self.train):
            annotations = spec["template"]["metadata"]["annotations"]
            self.assertEqual(annotations, {"prometheus.io/scrape": "true", "prometheus.io/port": "9464"})

    def test_every_volume_and_claim_is_there(self):
        spec = self.train["template"]["spec"]
        mounted = {mount["name"] for mount in spec["containers"][0]["volumeMounts"]}
        self.assertEqual(mounted, {volume["name"] for volume in spec["volumes"]})
        for volume in spec["volumes"]:
            if "persistentVolumeClaim" in volume:
                self.assertIn(("PersistentVolumeClaim", volume["persistentVolumeClaim"]["claimName"]), self.objects)
            else:  # made by the command that the kustomization says
                made = re.search(r"create configmap (\S+) --from-file=(\S+?)=(\S+)",
                                 (KUBERNETES / "base/kustomization.yaml").read_text())
                self.assertEqual(volume["configMap"]["name"], made[1])
                self.assertTrue(pathlib.Path(made[3]).is_file(), made[3])
                mount = next(m for m in spec["containers"][0]["volumeMounts"] if m["name"] == volume["name"])
                self.assertEqual(after(spec["containers"][0]["args"], "--job"), f"{mount['mountPath']}/{made[2]}")

    def test_the_pod_that_fills_the_data_mounts_the_claim_that_the_run_reads(self):
        pod = yaml.safe_load((KUBERNETES / "fill.yaml").read_text())["spec"]
        volume = next(v for v in self.train["template"]["spec"]["volumes"] if v["name"] == "data")
        self.assertEqual(pod["volumes"][0]["persistentVolumeClaim"]["claimName"],
                         volume["persistentVolumeClaim"]["claimName"])
        self.assertEqual(pod["containers"][0]["volumeMounts"][0]["name"], pod["volumes"][0]["name"])

    def test_no_pod_runs_as_root_or_may_become_it(self):
        for spec in (self.stages["template"]["spec"], self.train["template"]["spec"]):
            self.assertTrue(spec["securityContext"]["runAsNonRoot"])
            for container in spec["containers"]:
                self.assertFalse(container["securityContext"]["allowPrivilegeEscalation"])

    def test_the_patches_for_gpus_fit(self):
        gpu = yaml.safe_load((KUBERNETES / "gpu/kustomization.yaml").read_text())
        for base in gpu["resources"]:
            self.assertTrue((KUBERNETES / "gpu" / base / "kustomization.yaml").is_file(), base)
        for patch in gpu["patches"]:
            node = json.loads(json.dumps(self.objects[patch["target"]["kind"], patch["target"]["name"]]))
            for step in yaml.safe_load(patch["patch"]):
                *way, last = [key.replace("~1", "/") for key in step["path"].split("/")[1:]]
                parent = node
                for key in way:
                    parent = parent[int(key)] if isinstance(parent, list) else parent[key]
                if last == "-":
                    parent.append(step["value"])
                else:
                    self.assertEqual(last in parent, step["op"] == "replace", step)
                    parent[last] = step["value"]
            container = node["spec"]["template"]["spec"]["containers"][0]
            self.check_options("stage_server", container["args"])
            self.assertEqual(container["resources"]["limits"]["nvidia.com/gpu"], 1)


class Systemd(Case):
    def unit(self, name):
        settings = {}
        for line in (DEPLOY / "systemd" / name).read_text().splitlines():
            if "=" in line and not line.startswith("#"):
                key, value = line.split("=", 1)
                settings.setdefault(key, []).append(value)
        return settings

    def variables(self, name):
        lines = (DEPLOY / "systemd" / name).read_text().splitlines()
        return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))

    def command(self, unit, variables):
        text = self.unit(unit)["ExecStart"][0]
        used = set(re.findall(r"\$\{?([A-Z]+)", text))
        self.assertEqual(used, set(variables))
        return re.sub(r"\$\{?([A-Z]+)\}?", lambda match: variables[match[1]], text)

    def test_the_stage_server_gets_options_that_it_has(self):
        command = self.command("resbm-stage@.service", self.variables("stage.env"))
        self.check_listens_to_others(command)
        self.assertTrue(command.startswith("/opt/resbm/bin/stage_server "))

    def test_the_training_run_gets_options_that_it_has(self):
        command = self.command("resbm-train.service", self.variables("train.env"))
        self.check_options("resbm train", command)
        self.assertTrue(command.startswith("/opt/resbm/bin/resbm train "))
        self.assertTrue((DEPLOY / "jobs" / pathlib.Path(after(command, "--job")).name).is_file())

    def test_a_stage_server_that_is_misconfigured_is_not_started_again(self):
        unit = self.unit("resbm-stage@.service")
        self.assertEqual(unit["Restart"], ["on-failure"])
        refused = subprocess.run([STAGE_SERVER, "--listen", "0.0.0.0:0"], capture_output=True, text=True)
        self.assertIn("--insecure", refused.stderr)
        self.assertEqual(unit["RestartPreventExitStatus"], [str(refused.returncode)])


if __name__ == "__main__":
    unittest.main()
