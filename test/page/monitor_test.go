//go:build pagetest

package page

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipway-dev/slipway/internal/monitor/api"
	"github.com/slipway-dev/slipway/internal/monitor/change"
	"github.com/slipway-dev/slipway/internal/monitor/server"
	"github.com/slipway-dev/slipway/internal/monitor/store"
	"github.com/slipway-dev/slipway/internal/monitor/supervisor"
	"github.com/slipway-dev/slipway/internal/monitor/web"
	"github.com/slipway-dev/slipway/internal/web/rights"
)

// token is the one that the cluster accepts, and user whose it is. The user may list everything.
const (
	token = "a-token-of-the-cluster"
	user  = "alex@example.com"
)

type tokens struct{}

func (tokens) Create(_ context.Context, review *authenticationv1.TokenReview, _ metav1.CreateOptions) (*authenticationv1.TokenReview, error) {
	answer := review.DeepCopy()
	if review.Spec.Token == token && len(review.Spec.Audiences) == 0 {
		answer.Status = authenticationv1.TokenReviewStatus{Authenticated: true, User: authenticationv1.UserInfo{Username: user}}
	}
	return answer, nil
}

type reviews struct{}

func (reviews) Create(_ context.Context, review *authorizationv1.SubjectAccessReview, _ metav1.CreateOptions) (*authorizationv1.SubjectAccessReview, error) {
	answer := review.DeepCopy()
	answer.Status.Allowed = review.Spec.User == user && review.Spec.ResourceAttributes.Verb == "list"
	return answer, nil
}

// namespaces are not asked for: the user may list everywhere.
type namespaces struct{ rights.Namespaces }

// coverage follows kinds. One of them is refused.
type coverage struct {
	kinds   []change.Kind
	refused string
}

func (c coverage) Coverage() supervisor.Coverage {
	now := time.Now()
	all := supervisor.Coverage{Time: now, Complete: true, Definitions: supervisor.KindCoverage{State: supervisor.Live, LastSeen: now}}
	for _, kind := range c.kinds {
		one := supervisor.KindCoverage{Kind: kind, State: supervisor.Live, Since: now.Add(-26 * time.Hour), LastSeen: now, Lag: 40 * time.Millisecond}
		if kind.Resource == c.refused {
			one.State, one.Reason = supervisor.Refused, `the monitor may not list it: certificates.certs.example.com is forbidden`
			one.Since, one.LastSeen = now.Add(-9*time.Minute), now.Add(-9*time.Minute)
		}
		all.Kinds = append(all.Kinds, one)
	}
	return all
}

type rules struct{}

func (rules) Rules(context.Context) ([]api.Rule, error) {
	return []api.Rule{
		{Name: "deletion-stuck", Severity: "Warning", Summary: "an object has been deleted for 10 minutes and is still there"},
		{Name: "field-fight", Severity: "Warning", Summary: "two managers rewrite one field in turn", Firing: 1},
		{Name: "old-rule", Severity: "Info", Problem: "when: undeclared reference to 'objekt'"},
		{Name: "unhealthy", Severity: "Critical", Summary: "an object has failed for 5 minutes", Firing: 1},
	}, nil
}

func (rules) Alarms(context.Context) ([]server.Alarm, error) {
	return []server.Alarm{
		{
			Rule: "unhealthy", Severity: "Critical", Message: "Failed for 5 minutes: ImagePullBackOff", Since: time.Now().Add(-7 * time.Minute),
			Kind: schema.GroupResource{Group: "slipway.dev", Resource: "webapps"}, Namespace: "shop", Name: "checkout",
		},
		{
			Rule: "field-fight", Severity: "Warning", Message: ".spec.replicas is written by hpa and argocd in turn", Since: time.Now().Add(-40 * time.Minute),
			Kind: schema.GroupResource{Group: "slipway.dev", Resource: "webapps"}, Namespace: "shop", Name: "storefront",
		},
	}, nil
}

// monitor is a monitor with its own history.
type monitor struct {
	*testing.T
	store *store.Store
	url   string
	// revision counts resource versions.
	revision int
}

// newMonitor makes a monitor of a shop, with hostile objects in it.
func newMonitor(t *testing.T) *monitor {
	t.Helper()
	m := emptyMonitor(t)
	m.fillHostile()
	m.fill()
	return m
}

func emptyMonitor(t *testing.T) *monitor {
	t.Helper()
	made, err := store.Open(t.Context(), store.Options{
		Dir: t.TempDir(), BatchWait: time.Nanosecond,
		Patch: func(body []byte, fields []change.Field) ([]byte, error) { return change.Patch(body, fields, nil) },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = made.Close() })
	handler, err := server.New(server.Options{
		Store: made, Coverage: coverage{kinds(), "certificates"}, TokenReviews: tokens{}, AccessReviews: reviews{}, Namespaces: namespaces{}, Rules: rules{}, Reports: reports,
		Key: []byte(strings.Repeat("k", 32)), Page: web.Files(), Rate: 10_000, Burst: 10_000, Parallel: 400, Streams: 400,
	})
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(nil)
	s.Config = server.HTTPServer(handler)
	s.Start()
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return &monitor{T: t, store: made, url: s.URL, revision: 1000}
}

func (m *monitor) commit(batch store.Batch) {
	m.Helper()
	if err := m.store.Commit(m.Context(), batch); err != nil {
		m.Fatal(err)
	}
}
