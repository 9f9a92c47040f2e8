package health

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
)

// Refusal is the API server's answer to a ReplicaSet of a Deployment that wanted to create a
// pod.
type Refusal struct {
	// Pod is the name of the pod, or how it would begin. The name of the ReplicaSet is its
	// beginning. It is empty if the answer does not have it.
	Pod string
	// Answer is what the API server said.
	Answer string
	// Since is when the ReplicaSet was first refused. What it is refused for now may be
	// something else.
	Since time.Time
}

// RefusalOf returns why a ReplicaSet of a Deployment cannot create pods, or nil. The
// Deployment's controller tells of the current ReplicaSet first, and of an earlier one as
// long as that wants to create pods.
func RefusalOf(deployment *appsv1.Deployment) *Refusal {
	c := deploymentCondition(deployment, appsv1.DeploymentReplicaFailure)
	if c == nil || c.Status != corev1.ConditionTrue || c.Reason == "FailedDelete" {
		return nil
	}
	refusal := &Refusal{Answer: c.Message, Since: c.LastTransitionTime.Time}
	for _, prefix := range []*regexp.Regexp{forbiddenPod, invalidPod} {
		if m := prefix.FindStringSubmatch(c.Message); m != nil {
			refusal.Pod = m[1]
		}
	}
	return refusal
}

// verdict is that on the Deployment. A pod beside as many as are asked for is the extra one
// of a rollout.
func (r *Refusal) verdict(deployment *appsv1.Deployment) Verdict {
	subject := fmt.Sprintf("Deployment %q", deployment.Name)
	if want := wanted(deployment); want > 0 && deployment.Status.Replicas >= want {
		fields := ofWebApp
		fields.replicas = "" // no field asks for another pod
		return podCreation(fmt.Sprintf("%s cannot create the extra pod of its rollout (maxSurge), beside the %d that there are", subject, deployment.Status.Replicas), r.Answer, fields)
	}
	return podCreation(subject+" cannot create its pods", r.Answer, ofWebApp)
}

// DeploymentOf evaluates a Deployment with its ReplicaSets. That pods of an earlier template cannot
// be created is no word about it: the ReplicaSet of that template goes on trying as long as a
// rollout has not replaced its pods.
func DeploymentOf(deployment *appsv1.Deployment, replicaSets []metav1.PartialObjectMetadata) Verdict {
	return DeploymentRefused(deployment, CurrentRefusal(deployment, replicaSets))
}

// CurrentRefusal returns why pods of the current template cannot be created, or nil.
func CurrentRefusal(deployment *appsv1.Deployment, replicaSets []metav1.PartialObjectMetadata) *Refusal {
	refusal := RefusalOf(deployment)
	if refusal == nil || refusal.isOfEarlier(CurrentTemplate(deployment, replicaSets), replicaSets) {
		return nil
	}
	return refusal
}

// DeploymentRefused evaluates a Deployment whose pods cannot be created for what is given in the
// place of what its conditions say. Nil: nothing.
func DeploymentRefused(deployment *appsv1.Deployment, refusal *Refusal) Verdict {
	evaluated := *deployment
	evaluated.Status.Conditions = slices.DeleteFunc(slices.Clone(deployment.Status.Conditions), func(c appsv1.DeploymentCondition) bool {
		return c.Type == appsv1.DeploymentReplicaFailure
	})
	if refusal != nil {
		evaluated.Status.Conditions = append(evaluated.Status.Conditions, appsv1.DeploymentCondition{
			Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Reason: "FailedCreate", Message: refusal.Answer,
		})
	}
	return Deployment(&evaluated)
}

// isOfEarlier reports whether it was a ReplicaSet of an earlier template that was refused. Its
// name begins that of the pod. An answer without one is of an earlier template if it is older
// than the ReplicaSet of the current one.
func (r *Refusal) isOfEarlier(template string, replicaSets []metav1.PartialObjectMetadata) bool {
	if template == "" {
		return false
	}
	earlier := false
	for i := range replicaSets {
		set := &replicaSets[i]
		current := set.Labels[appsv1.DefaultDeploymentUniqueLabelKey] == template
		if set.Name != "" && strings.HasPrefix(r.Pod, set.Name+"-") {
			return !current
		}
		earlier = earlier || current && r.Since.Before(set.CreationTimestamp.Time)
	}
	return earlier
}

// These are the prefixes of the API server's answer when it refuses a pod. They contain the
// name of a pod that never existed, or none if the creator may not create any.
var (
	forbiddenPod = regexp.MustCompile(`^pods(?: "([^"]*)")? is forbidden: `)
	invalidPod   = regexp.MustCompile(`^Pod "([^"]*)" is invalid: `)
)

// These are the beginnings of what the API server's plug-ins and others answer. What comes
// after them may be anything: an author of a policy, or the spec of the pod, chose it.
var (
	deniedByWebhook = regexp.MustCompile(`^admission webhook "[^"]*" denied the request\b`)
	noAccount       = regexp.MustCompile(`^error looking up service account `)
	noPriority      = regexp.MustCompile(`^no PriorityClass with name \S+ was found$`)
	missingAccount  = regexp.MustCompile(`^error looking up service account [^/\s]+/(\S+): serviceaccount "[^"]*" not found$`)
)

// limitRange matches the beginning of an answer of a LimitRange, and limit each of its
// parts. They do not contain the name of the LimitRange.
var (
	limitRange = regexp.MustCompile(`^\[?` + limitText)
	limit      = regexp.MustCompile(limitText)
)

const limitText = `(?:(?:minimum|maximum) (\S+) usage per \S+ is .*?(request|limit)|(\S+) max limit to request ratio per)\b`

// podCreation classifies the API server's answer to the creation of a pod, by how it
// begins. what says who cannot create it.
func podCreation(what, answer string, fields podFields) Verdict {
	answer, forbidden := withoutPod(answer)
	failed := func(reason, format string, args ...any) Verdict {
		return Verdict{State: Failed, Reason: reason, Message: what + ": " + fmt.Sprintf(format, args...)}
	}
	if !forbidden {
		if deniedByWebhook.MatchString(answer) {
			return failed(slipwayv1alpha1.ReasonPodsForbidden, "%s", answer)
		}
		return failed(slipwayv1alpha1.ReasonPodsNotCreated, "%s", withoutAddresses(answer))
	}
	if text, ok := quota(answer, fields); ok {
		return failed(slipwayv1alpha1.ReasonQuotaExceeded, "%s", text)
	}
	switch {
	case noAccount.MatchString(answer):
		return failed(slipwayv1alpha1.ReasonPodsNotCreated, "%s%s", answer, fields.in(fields.account))
	case noPriority.MatchString(answer):
		return failed(slipwayv1alpha1.ReasonPodsForbidden, "%s%s", answer, fields.in(fields.priority))
	case limitRange.MatchString(answer):
		return failed(slipwayv1alpha1.ReasonPodsForbidden, "a LimitRange of the namespace does not allow them: %s%s", answer, fields.in(strings.Join(limitedFields(answer, fields), ", ")))
	default:
		return failed(slipwayv1alpha1.ReasonPodsForbidden, "%s", answer)
	}
}

// JobRefused is the verdict on a Job of backups whose pod was refused, from what its controller says of that in an event.
func JobRefused(job *batchv1.Job, said string) Verdict {
	fields := ofMover(job.Labels)
	said = strings.TrimPrefix(combined.ReplaceAllString(said, ""), jobSays)
	verdict := podCreation(fmt.Sprintf("Job %q cannot create its pod", job.Name), said, fields)
	if answer, forbidden := withoutPod(said); forbidden && podSecurity.MatchString(answer) && runsAsRoot(job) {
		verdict.Message += fmt.Sprintf(" (%s%s is %s, which the namespace has to allow)", fields.runAs, fields.of, slipwayv1alpha1.MoverRoot)
	}
	return verdict
}

// jobSays is how the controller of Jobs begins what it says of an answer.
const jobSays = "Error creating: "

// podSecurity is the beginning of the answer of the Pod Security admission plug-in.
var podSecurity = regexp.MustCompile(`^violates PodSecurity "`)

// withoutPod removes the pod's name from an answer. It reports whether the answer says that
// the pod is forbidden.
func withoutPod(answer string) (text string, forbidden bool) {
	for _, prefix := range []*regexp.Regexp{forbiddenPod, invalidPod} {
		if m := prefix.FindStringSubmatch(answer); m != nil {
			text := answer[len(m[0]):]
			if m[1] != "" {
				text = strings.ReplaceAll(text, m[1], "...")
			}
			return text, prefix == forbiddenPod
		}
	}
	return answer, false
}

// limitedFields returns the fields of the spec that the answer of a LimitRange is about,
// without duplicates.
func limitedFields(answer string, of podFields) []string {
	var fields []string
	for _, m := range limit.FindAllStringSubmatch(answer, -1) {
		field := of.resources + "." + m[2] + "s." + m[1]
		if m[3] != "" {
			field = of.resources + ".limits." + m[3]
		}
		if !slices.Contains(fields, field) {
			fields = append(fields, field)
		}
	}
	return fields
}

// address matches addresses in the messages of network programs. Pod addresses and ports
// differ at every attempt.
var address = regexp.MustCompile(`\b\d{1,3}(\.\d{1,3}){3}(:\d+)?(->\d{1,3}(\.\d{1,3}){3}(:\d+)?)?|\[[0-9a-fA-F:]*:[0-9a-fA-F:]*\](:\d+)?(->\[[0-9a-fA-F:]*\](:\d+)?)?`)

// withoutAddresses replaces the IP addresses in a text.
func withoutAddresses(text string) string { return address.ReplaceAllString(text, "(address)") }
