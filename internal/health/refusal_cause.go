package health

import (
	"regexp"
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
	// CauseNamespace: the Pod Security level of the namespace.
	CauseNamespace Cause = "Namespace"
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
	if podSecurity.MatchString(answer) {
		return CauseNamespace, ""
	}
	return "", ""
}

// Fits reports whether a quota has room for what was refused, or no longer wants what the pods do not say, as far as its status
// and the answer tell: the API server goes by the status, which follows the spec. known is false if they do not.
func (r *Refusal) Fits(quota *corev1.ResourceQuota) (fits, known bool) {
	answer, _ := withoutPod(r.Answer)
	if m := failedQuota.FindStringSubmatch(answer); m != nil {
		wanted := wants(quota, unspecified.FindAllStringSubmatch(m[2], -1))
		return !wanted, !wanted
	}
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

// wants reports whether a quota bounds one of the named resources. It is taken to, if none is named.
func wants(quota *corev1.ResourceQuota, named [][]string) bool {
	for _, m := range named {
		name := corev1.ResourceName(m[1])
		_, asked := quota.Spec.Hard[name]
		_, bounded := quota.Status.Hard[name]
		if asked || bounded {
			return true
		}
	}
	return len(named) == 0
}

// bound matches a bound in the answer of a LimitRange: the least or the most of a resource, or the ratio, and of what.
var bound = regexp.MustCompile(`(?:(minimum|maximum) (\S+) usage|(\S+) max limit to request ratio) per (\S+) is (\w+)`)

// Lifted reports whether none of the LimitRanges of the namespace has a bound any more that refused the pods. It is false, too,
// if the answer does not tell.
func (r *Refusal) Lifted(ranges []corev1.LimitRange) bool {
	answer, _ := withoutPod(r.Answer)
	bounds := bound.FindAllStringSubmatch(answer, -1)
	if len(bounds) != len(limit.FindAllString(answer, -1)) {
		return len(ranges) == 0
	}
	for i := range ranges {
		for _, item := range ranges[i].Spec.Limits {
			for _, m := range bounds {
				list, name := item.MaxLimitRequestRatio, m[3]
				switch m[1] {
				case "minimum":
					list, name = item.Min, m[2]
				case "maximum":
					list, name = item.Max, m[2]
				}
				now, bounded := list[corev1.ResourceName(name)]
				if bounded && string(item.Type) == m[4] && equal(now, m[5]) {
					return false
				}
			}
		}
	}
	return true
}

// equal reports whether an amount is what a text says. It is taken to be if the text is none.
func equal(amount resource.Quantity, text string) bool {
	said, err := resource.ParseQuantity(text)
	return err != nil || amount.Cmp(said) == 0
}

// Today returns the refusal with the figures of a quota whose limits are others than those that refused. Else it is as it was:
// what is used changes all the time.
func (r *Refusal) Today(quota *corev1.ResourceQuota) *Refusal {
	answer, _ := withoutPod(r.Answer)
	m := exceededQuota.FindStringSubmatch(answer)
	if m == nil {
		return r
	}
	changed := false
	var used, limited []string
	usedThen, limitedThen := amounts(m[3]), amounts(m[4])
	for _, pair := range strings.Split(m[2], ",") {
		name, _, _ := strings.Cut(pair, "=")
		hard, ok := quota.Status.Hard[corev1.ResourceName(name)]
		count, counted := quota.Status.Used[corev1.ResourceName(name)]
		if !ok || !counted {
			used, limited = append(used, name+"="+usedThen[name]), append(limited, name+"="+limitedThen[name])
			continue
		}
		changed = changed || !equal(hard, limitedThen[name])
		used, limited = append(used, name+"="+count.String()), append(limited, name+"="+hard.String())
	}
	if !changed {
		return r
	}
	today := *r
	today.Answer = r.Answer[:len(r.Answer)-len(answer)] + "exceeded quota: " + m[1] + ", requested: " + m[2] +
		", used: " + strings.Join(used, ",") + ", limited: " + strings.Join(limited, ",")
	return &today
}

// Same reports whether another answer says the same of another pod, or at another count.
func (r *Refusal) Same(other *Refusal) bool { return r.gist() == other.gist() }

// gist is what an answer says, without what differs at every attempt.
func (r *Refusal) gist() string {
	answer, _ := withoutPod(r.Answer)
	if m := exceededQuota.FindStringSubmatch(answer); m != nil {
		return strings.Join([]string{"exceeded quota", m[1], m[2], m[4]}, " ")
	}
	return podCreation("", r.Answer, ofWebApp).Message
}
