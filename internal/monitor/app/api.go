package app

import (
	"context"
	"io/fs"
	"net/http"
	"slices"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/slipway-dev/slipway/internal/monitor/recorder"
	"github.com/slipway-dev/slipway/internal/monitor/server"
	"github.com/slipway-dev/slipway/internal/monitor/supervisor"
)

// serviceName is the Service of the monitor.
const serviceName = "slipway-monitor"

// namespacesResource is where it is asked which namespace has a name now.
var namespacesResource = corev1.SchemeGroupVersion.WithResource("namespaces")

// Answers is the half of an Extension that serves the API and the page. The other half observes: NoRules, for example.
type Answers struct {
	// Namespace is where the monitor runs. With it the names of the Service are known as names of the monitor. Empty: they are not.
	Namespace string
	// Rules says which rules there are. Nil: none.
	Rules server.Rules
	// Page has the files of the page. Nil: there is none.
	Page fs.FS
}

// API makes the handler. It sends nothing to the API server yet.
func (a *Answers) API(_ context.Context, parts Parts) (http.Handler, error) {
	access := rest.CopyConfig(parts.Access)
	access.QPS = -1 // the server limits what users may ask for
	tokens, err := authenticationclient.NewForConfig(access)
	if err != nil {
		return nil, err
	}
	rights, err := authorizationclient.NewForConfig(access)
	if err != nil {
		return nil, err
	}
	objects, err := metadata.NewForConfig(access)
	if err != nil {
		return nil, err
	}
	c := &parts.Config.API
	return server.New(server.Options{
		Store: parts.Store, Coverage: coverage(parts.Coverage), Rules: a.Rules, Page: a.Page, Ready: parts.Ready,
		Reports: func(ctx context.Context, name string) ([]recorder.Report, error) {
			return recorder.Reports(ctx, parts.Store, name)
		},
		HasNoStatus:  parts.Recorder.HasNoStatus,
		Subscribe:    func() server.Subscription { return subscription{parts.Recorder.Subscribe(1, nil)} },
		TokenReviews: tokens.TokenReviews(), AccessReviews: rights.SubjectAccessReviews(), OwnAudienceOnly: c.OwnTokensOnly,
		Namespaces: objects.Resource(namespacesResource),
		Key:        parts.Key, Hosts: slices.Concat(serviceHosts(a.Namespace), c.Hosts), BehindTLS: c.BehindTLS,
		Logger: logr.FromSlogHandler(parts.Log.Handler()),
	})
}

// serviceHosts are the names of the Service, as pods use them.
func serviceHosts(namespace string) []string {
	if namespace == "" {
		return nil
	}
	name := serviceName + "." + namespace
	return []string{serviceName, name, name + ".svc", name + ".svc.cluster.local"}
}

type coverage func() supervisor.Coverage

// Coverage says what is seen.
func (c coverage) Coverage() supervisor.Coverage { return c() }

// subscription tells that something was stored. What it was is read from the store.
type subscription struct{ *recorder.Subscription }

// Next waits until something was stored.
func (s subscription) Next(ctx context.Context) error {
	_, _, err := s.Subscription.Next(ctx)
	return err
}
