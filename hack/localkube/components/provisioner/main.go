// Command provisioner gives every claim of the local cluster's StorageClass a
// directory on this machine.
//
// The volumes are of type local rather than hostPath, because the kubelet then
// applies a pod's fsGroup to them as it does on a real cluster.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v13/controller"
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "kubeconfig of the cluster")
	name := flag.String("name", "localkube.slipway.dev/directory", "the provisioner name that StorageClasses use")
	root := flag.String("root", "", "directory that holds the volumes")
	flag.Parse()

	if err := run(*kubeconfig, *name, *root); err != nil {
		fmt.Fprintln(os.Stderr, "provisioner:", err)
		os.Exit(1)
	}
}

func run(kubeconfig, name, root string) error {
	if root == "" {
		return errors.New("--root is required")
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	// There is one node and one provisioner, so nobody to elect.
	provision := controller.NewProvisionController(ctx, client, name, directories{root: root}, controller.LeaderElection(false))
	provision.Run(ctx)
	return nil
}

// directories makes and removes one directory per volume below root.
type directories struct {
	root string
}

func (d directories) Provision(
	_ context.Context, options controller.ProvisionOptions,
) (*corev1.PersistentVolume, controller.ProvisioningState, error) {
	for _, mode := range options.PVC.Spec.AccessModes {
		if mode == corev1.ReadOnlyMany {
			return nil, controller.ProvisioningFinished, errors.New(
				"access mode ReadOnlyMany is not supported: an empty directory that nobody can write is of no use",
			)
		}
	}
	if options.SelectedNodeName == "" {
		return nil, controller.ProvisioningFinished, errors.New("no node was chosen: the StorageClass must bind with WaitForFirstConsumer")
	}

	path := filepath.Join(d.root, options.PVName)
	if err := os.MkdirAll(path, 0o777); err != nil {
		return nil, controller.ProvisioningFinished, err
	}
	// Pods run as any user, and the process' umask must not decide who can write.
	if err := os.Chmod(path, 0o777); err != nil {
		return nil, controller.ProvisioningFinished, err
	}
	return volume(options, path), controller.ProvisioningFinished, nil
}

func (d directories) Delete(_ context.Context, volume *corev1.PersistentVolume) error {
	if volume.Spec.Local == nil {
		return &controller.IgnoredError{Reason: "it is not a local volume"}
	}
	// A volume object can be edited, so never remove what lies outside root.
	path := filepath.Clean(volume.Spec.Local.Path)
	if !strings.HasPrefix(path, filepath.Clean(d.root)+string(filepath.Separator)) {
		return &controller.IgnoredError{Reason: path + " is not below " + d.root}
	}
	return os.RemoveAll(path)
}

func volume(options controller.ProvisionOptions, path string) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: options.PVName},
		Spec: corev1.PersistentVolumeSpec{
			PersistentVolumeReclaimPolicy: *options.StorageClass.ReclaimPolicy,
			AccessModes:                   options.PVC.Spec.AccessModes,
			Capacity: corev1.ResourceList{
				corev1.ResourceStorage: options.PVC.Spec.Resources.Requests[corev1.ResourceStorage],
			},
			PersistentVolumeSource: corev1.PersistentVolumeSource{
				Local: &corev1.LocalVolumeSource{Path: path},
			},
			NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{{
					MatchExpressions: []corev1.NodeSelectorRequirement{{
						Key:      corev1.LabelHostname,
						Operator: corev1.NodeSelectorOpIn,
						Values:   []string{options.SelectedNodeName},
					}},
				}},
			}},
		},
	}
}
