#!/usr/bin/env bash
# Gives a running local cluster CSI volumes that can be snapshotted: the StorageClass csi and the VolumeSnapshotClass csi, on a
# btrfs file system in a file. It does nothing where all runs, and starts what does not. The programs end with the cluster
# (`localkube down`), and so does the file system.
#
#   hack/csi.sh NAME          the cluster, as `localkube up --name` knows it
#   hack/csi.sh --programs    only builds the programs, and prints a folder with them and kube-controller-manager
#
# It needs root, a free loop device, and btrfs-progs, which it installs if they are missing (Debian). The programs are built
# once: hack/csi, external-snapshotter and external-provisioner.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source hack/lib.sh
name=${1:?usage: hack/csi.sh NAME}
components=hack/localkube/components

if ! command -v mkfs.btrfs >/dev/null; then
  apt-get install --yes --no-install-recommends btrfs-progs >/dev/null ||
    { apt-get update >/dev/null && apt-get install --yes --no-install-recommends btrfs-progs >/dev/null; }
fi
make --no-print-directory bin/localkube >&2
driver=$(build_once hack/csi . csi)
snapshot_controller=$(build_once $components/snapshotter github.com/kubernetes-csi/external-snapshotter/v8/cmd/snapshot-controller snapshot-controller)
snapshotter=$(build_once $components/snapshotter github.com/kubernetes-csi/external-snapshotter/v8/cmd/csi-snapshotter csi-snapshotter)
provisioner=$(build_once $components/csi-provisioner github.com/kubernetes-csi/external-provisioner/v6/cmd/csi-provisioner csi-provisioner)
if [[ $name == --programs ]]; then
  mkdir -p bin/csi
  ln -sf "$driver" "$snapshot_controller" "$snapshotter" "$provisioner" "$(dirname "$(readlink -f "$(bin/localkube assets)/kube-apiserver")")/kube-controller-manager" bin/csi/
  echo "$PWD/bin/csi"
  exit
fi
bin/localkube status --name "$name" >/dev/null || die "the local cluster $name does not run"
KUBECONFIG=$(bin/localkube kubeconfig --name "$name")
export KUBECONFIG
find_kubectl
state=$(dirname "$KUBECONFIG")

# The kinds come from the module that the programs are built from.
client=github.com/kubernetes-csi/external-snapshotter/client/v8
go mod download -C $components/snapshotter $client
crds=$(go list -C $components/snapshotter -m -f '{{.Dir}}' $client)/config/crd
"$KUBECTL" apply --server-side -f "$crds/snapshot.storage.k8s.io_volumesnapshots.yaml" \
  -f "$crds/snapshot.storage.k8s.io_volumesnapshotclasses.yaml" -f "$crds/snapshot.storage.k8s.io_volumesnapshotcontents.yaml" >/dev/null
"$KUBECTL" wait --for=condition=Established crd --all --timeout=60s >/dev/null
"$KUBECTL" apply --server-side -f hack/csi/manifests >/dev/null

# start PROGRAM COMMAND... runs a program in the namespaces of the cluster, and again whenever it ends. The mark in its
# environment is what `localkube down` finds it by.
mkdir -p "$state/csi"
start() {
  local program=$1 record=$state/csi/$1.pid
  shift
  if [[ -f $record ]] && kill -0 "$(<"$record")" 2>/dev/null; then return; fi
  env -i PATH="$PATH:/usr/sbin:/sbin" HOME="$state" SLIPWAY_LOCALKUBE="$state" \
    setsid nsenter --mount="$state/namespaces/private/mnt" --net="$state/namespaces/net" -- \
    bash -c 'while true; do "$@"; echo "it has ended with $?, and is started again"; sleep 1; done' loop "$@" \
    >>"$state/logs/csi-$program.log" 2>&1 8>&- </dev/null &
  echo $! >"$record"
}
socket=$state/csi/csi.sock
start driver "$driver" --socket="$socket" --root="$state/csi/root" --image="$state/csi/image" --node="$name" --registry="$state/kubelet/plugins_registry"
start snapshot-controller "$snapshot_controller" --kubeconfig="$KUBECONFIG"
start snapshotter "$snapshotter" --kubeconfig="$KUBECONFIG" --csi-address="$socket"
start provisioner "$provisioner" --kubeconfig="$KUBECONFIG" --csi-address="$socket"

registered() { "$KUBECTL" get csinode "$name" -o jsonpath='{.spec.drivers[*].name}' 2>/dev/null | grep -q csi.localkube.slipway.dev; }
for _ in {1..120}; do
  if registered; then
    say "the cluster $name has CSI volumes: StorageClass csi, VolumeSnapshotClass csi"
    exit 0
  fi
  sleep 0.5
done
tail -n 20 "$state"/logs/csi-*.log >&2 || true
die 'the kubelet did not register the driver'
