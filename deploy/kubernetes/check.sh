#!/usr/bin/env bash
# Checks the manifests, as kustomize lays them together, against the strict schemas of several versions of Kubernetes.
# Needs kubectl and Python's venv; no cluster.
#
#   bash deploy/kubernetes/check.sh
set -euo pipefail
cd "$(dirname "$0")"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT

python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check kubernetes-validate==1.37.0
for folder in base gpu; do kubectl kustomize "$folder" >"$work/$folder.yaml"; done
kubectl create configmap resbm-job --from-file=job.textproto=../jobs/fashion_mnist.textproto --dry-run=client \
  --output=yaml >"$work/job.yaml"
for version in 1.27 1.30 1.34 1.37; do
  "$work/venv/bin/kubernetes-validate" --strict --quiet -k "$version" "$work"/{base,gpu,job}.yaml fill.yaml
  echo "Kubernetes $version: valid"
done
