package health

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Cause is a kind of object that refuses pods.
type Cause string

// The causes whose objects can be found.
const (
	// CauseQuota: a ResourceQuota, which the answer names.
	CauseQuota Cause = "ResourceQuota"
	// CauseLimits: a LimitRange of the namespace. The answer does not say which.
	CauseLimits Cause = "LimitRange"
	// CauseAccount: a ServiceAccount that does not exist.
	CauseAccount Cause = "ServiceAccount"
)

// Cause returns what refuses the pods, and its name if the answer has one, or "".
func (r *Refusal) Cause() (kind Cause, name string) {
	answer, forbidden := withoutPod(r.Answer)
	if !forbidden {
		return "", ""
	}
	if m := exceededQuota.FindStringSubmatch(answer); m != nil {
		return CauseQuota, m[1]
	}
	if m := failedQuota.FindStringSubmatch(answer); m != nil {
		return CauseQuota, m[1]
	}
	if m := missingAccount.FindStringSubmatch(answer); m != nil {
		return CauseAccount, m[1]
	}
	if limitRange.MatchString(answer) {
		return CauseLimits, ""
	}
	return "", ""
}

// Fits reports whether a quota has room for what was refused, as far as its status and the answer
// tell: the API server goes by the status, which follows the spec. known is false if they do not.
func (r *Refusal) Fits(quota *corev1.ResourceQuota) (fits, known bool) {
	answer, _ := withoutPod(r.Answer)
	m := exceededQuota.FindStringSubmatch(answer)
	if m == nil {
		return false, false
	}
	for name, amount := range amounts(m[2]) {
		asked, err := resource.ParseQuantity(amount)
		hard, bounded := quota.Status.Hard[corev1.ResourceName(name)]
		used, counted := quota.Status.Used[corev1.ResourceName(name)]
		switch {
		case err != nil:
			return false, false
		case !bounded && quota.Spec.Hard == nil:
			continue
		case !bounded, !counted:
			return false, false
		}
		used.Add(asked)
		if used.Cmp(hard) > 0 {
			return false, true
		}
	}
	return true, true
}

// Today returns the refusal with the figures that a quota has now.
func (r *Refusal) Today(quota *corev1.ResourceQuota) *Refusal {
	answer, _ := withoutPod(r.Answer)
	m := exceededQuota.FindStringSubmatch(answer)
	if m == nil {
		return r
	}
	figures := func(of corev1.ResourceList, otherwise string) string {
		old := amounts(otherwise)
		var parts []string
		for _, pair := range strings.Split(m[2], ",") {
			name, _, _ := strings.Cut(pair, "=")
			amount, ok := of[corev1.ResourceName(name)]
			if !ok {
				parts = append(parts, name+"="+old[name])
				continue
			}
			parts = append(parts, name+"="+amount.String())
		}
		return strings.Join(parts, ",")
	}
	today := *r
	today.Answer = r.Answer[:len(r.Answer)-len(answer)] + "exceeded quota: " + m[1] + ", requested: " + m[2] +
		", used: " + figures(quota.Status.Used, m[3]) + ", limited: " + figures(quota.Status.Hard, m[4])
	return &today
}
