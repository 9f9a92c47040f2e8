package operator

import (
	"context"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	crmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/slipway-dev/slipway/internal/metric"
)

const (
	// rightsEvery is how often the operator asks what it may do, and rightsAgain when it asks again after that has failed.
	rightsEvery = 10 * time.Minute
	rightsAgain = time.Minute
	// maxRightsNamespaces is in how many of its own namespaces a limited operator asks.
	maxRightsNamespaces = 20
)

// strongRight is a right with which whoever takes over the operator could take over much more.
type strongRight struct {
	name                               string
	verb, group, resource, subresource string
	// inCluster reports whether an operator for all namespaces asks for it, and inNamespaces whether a limited one does, in its own.
	inCluster, inNamespaces func(Options) bool
}

func always(Options) bool  { return true }
func never(Options) bool   { return false }
func hooks(o Options) bool { return o.BackupHooks }

// strongRights are those that are looked for. They are few, because each costs a question.
func strongRights() []strongRight {
	const rbac = "rbac.authorization.k8s.io"
	return []strongRight{
		{"create pods/exec", "create", "", "pods", "exec", hooks, hooks},
		{"create pods/attach", "create", "", "pods", "attach", never, never},
		{"patch pods/ephemeralcontainers", "patch", "", "pods", "ephemeralcontainers", never, never},
		{"create pods", "create", "", "pods", "", never, never},
		{"create deployments", "create", "apps", "deployments", "", always, always},
		{"patch deployments", "patch", "apps", "deployments", "", always, always},
		{"get secrets", "get", "", "secrets", "", always, always},
		{"list secrets", "list", "", "secrets", "", always, always}, // a list has the content
		{"create serviceaccounts/token", "create", "", "serviceaccounts", "token", never, never},
		{"create rolebindings", "create", rbac, "rolebindings", "", always, always},
		{"create clusterrolebindings", "create", rbac, "clusterrolebindings", "", never, never},
		{"bind clusterroles", "bind", rbac, "clusterroles", "", never, never},
		{"escalate clusterroles", "escalate", rbac, "clusterroles", "", never, never},
		{"escalate roles", "escalate", rbac, "roles", "", never, never},
		{"impersonate users", "impersonate", "", "users", "", never, never},
		{"impersonate serviceaccounts", "impersonate", "", "serviceaccounts", "", never, never},
	}
}

// ExcessRights tells of rights that somebody else gave the operator, or that an earlier install left.
var ExcessRights = metric.Definition{
	Name: "slipway_operator_excess_rights", Type: metric.Gauge, Labels: []string{"right"},
	Help: "Whether the operator has a right that it does not ask for: 1, or 0. It looks for a few strong ones, in the whole cluster and, " +
		"if it is limited to namespaces, in 20 of them and in kube-system.",
}

// excess is a right that the operator has and does not ask for. The namespace is empty for the whole cluster.
type excess struct{ Right, Namespace string }

// excessRights asks for each of the strong rights whether the operator has it where it does not ask for it.
func excessRights(options Options, allowed func(strongRight, string) (bool, error)) ([]excess, error) {
	limited := len(options.Namespaces) > 0
	var found []excess
	for _, right := range strongRights() {
		var where []string
		if limited || !right.inCluster(options) {
			where = append(where, "")
		}
		if limited {
			where = append(where, metav1.NamespaceSystem)
			if !right.inNamespaces(options) {
				where = append(where, options.Namespaces[:min(len(options.Namespaces), maxRightsNamespaces)]...)
			}
		}
		for _, namespace := range where {
			has, err := allowed(right, namespace)
			if err != nil {
				return nil, err
			}
			if has {
				found = append(found, excess{right.name, namespace})
				break // one place is enough to look for the binding
			}
		}
	}
	return found, nil
}

// rightsCheck asks at the start and now and then. It only tells: nobody can take a right away from itself.
type rightsCheck struct {
	options Options
	reviews authorizationclient.SelfSubjectAccessReviewInterface
	clock   clock.Clock
	log     logr.Logger
	gauge   *prometheus.GaugeVec
}

// addRightsCheck adds the check to a manager.
func addRightsCheck(mgr ctrl.Manager, options Options) error {
	reviews, err := authorizationclient.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return err
	}
	gauge := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: ExcessRights.Name, Help: ExcessRights.Help}, ExcessRights.Labels)
	return mgr.Add(&rightsCheck{
		options: options, reviews: reviews.SelfSubjectAccessReviews(), clock: clock.RealClock{}, log: mgr.GetLogger().WithName("rights"),
		gauge: metric.Registered(crmetrics.Registry, gauge),
	})
}

// NeedLeaderElection is false: a standby has the rights, too.
func (c *rightsCheck) NeedLeaderElection() bool { return false }

// Start runs until the context ends.
func (c *rightsCheck) Start(ctx context.Context) error {
	var reported []excess
	for {
		next := rightsEvery
		found, err := excessRights(c.options, func(right strongRight, namespace string) (bool, error) {
			return c.has(ctx, right, namespace)
		})
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			c.log.V(1).Info("the API server does not say what the operator may do", "error", err.Error())
			next = rightsAgain
		default:
			c.report(found, reported)
			reported = found
		}
		timer := c.clock.NewTimer(next)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C():
		}
	}
}

// report sets the metrics, and logs what is new.
func (c *rightsCheck) report(found, reported []excess) {
	for _, right := range strongRights() {
		has := 0.0
		if slices.ContainsFunc(found, func(e excess) bool { return e.Right == right.name }) {
			has = 1
		}
		c.gauge.WithLabelValues(right.name).Set(has)
	}
	for _, one := range found {
		if slices.Contains(reported, one) {
			continue
		}
		c.log.Info("the operator may do what it does not ask for: a binding of another install, or of somebody else, gives it to its "+
			"ServiceAccount",
			"right", one.Right, "namespace", one.Namespace, "limited", len(c.options.Namespaces) > 0)
	}
}

func (c *rightsCheck) has(ctx context.Context, right strongRight, namespace string) (bool, error) {
	answer, err := c.reviews.Create(ctx, &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: namespace, Verb: right.verb, Group: right.group, Resource: right.resource, Subresource: right.subresource,
		},
	}}, metav1.CreateOptions{})
	if err != nil {
		return false, err
	}
	return answer.Status.Allowed, nil
}
