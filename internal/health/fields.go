package health

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
)

// The containers of a Job of backups that run an image of the user.
const (
	containerDump    = "dump"
	containerCommand = "command"
)

// podFields are the fields of a spec that decide about a pod, as messages name them. An empty one: no field does.
type podFields struct {
	replicas, storage, account, resources, priority, runAs string
	// of comes after each: whose fields they are, where it is not the object that tells of them.
	of string
}

// ofWebApp are the fields of a WebApp. Those of gateways have the same names.
var ofWebApp = podFields{replicas: fieldReplicas, storage: "spec.storage.size", account: "spec.serviceAccountName", resources: "spec.resources"}

// ofMover are the fields of what has a Job move data, by the labels of the Job.
func ofMover(labels map[string]string) podFields {
	return podFields{
		resources: "spec.mover.resources", priority: "spec.mover.priorityClassName", runAs: "spec.mover.runAs", of: whose(labels),
	}
}

// whose says of whom the fields of a Job of backups are. Those of a run are the Backup's.
func whose(labels map[string]string) string {
	if labels[slipwayv1alpha1.LabelBackupRun] != "" {
		return " of the Backup"
	}
	return ""
}

// isMover reports whether a pod is of a Job that moves data.
func isMover(pod *corev1.Pod) bool {
	for _, label := range []string{slipwayv1alpha1.LabelBackup, slipwayv1alpha1.LabelBackupRun, slipwayv1alpha1.LabelRestore} {
		if pod.Labels[label] != "" {
			return true
		}
	}
	return false
}

// in returns a field in brackets, or "" for no field.
func (f podFields) in(field string) string {
	if field == "" {
		return ""
	}
	return " (" + field + f.of + ")"
}

// imageField is the field that has the image of a container.
func imageField(pod *corev1.Pod, container string) string {
	switch {
	case !isMover(pod):
		return "spec.image"
	case container == containerDump:
		return "spec.dump.image" + whose(pod.Labels)
	case container == containerCommand:
		return "spec.verify.drill.image"
	default:
		return "--backup-image of the operator"
	}
}

// pullSecretsField is the field that has the Secrets with which images are pulled.
func pullSecretsField(pod *corev1.Pod) string {
	if isMover(pod) {
		return "spec.mover.imagePullSecrets" + whose(pod.Labels)
	}
	return "spec.imagePullSecrets"
}

// requestField is the field by which a container requests a resource, or "".
func requestField(pod *corev1.Pod, container, resource string) string {
	switch {
	case isOwnContainer(pod, container):
		return "spec.resources.requests." + resource
	case isMover(pod):
		return ofMover(pod.Labels).resources + ".requests." + resource + whose(pod.Labels)
	default:
		return ""
	}
}

// runsAsRoot reports whether the pod of a Job is to run as root.
func runsAsRoot(job *batchv1.Job) bool {
	security := job.Spec.Template.Spec.SecurityContext
	return security != nil && security.RunAsUser != nil && *security.RunAsUser == 0
}
