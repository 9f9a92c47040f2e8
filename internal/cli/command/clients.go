package command

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/pkg/client/clientset/versioned"
	typed "github.com/slipway-dev/slipway/pkg/client/clientset/versioned/typed/api/v1alpha1"
)

// Clients are the clients for one namespace.
type Clients struct {
	Slipway   versioned.Interface
	Kube      kubernetes.Interface
	Namespace string
}

// Clients makes the clients from the flags and the kubeconfig, as kubectl does.
func (p *Program) Clients() (*Clients, error) {
	config, err := p.Flags.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("find the cluster: %w", err)
	}
	namespace, _, err := p.Flags.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, fmt.Errorf("find the namespace: %w", err)
	}
	slipway, err := versioned.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client for the cluster: %w", err)
	}
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client for the cluster: %w", err)
	}
	return &Clients{Slipway: slipway, Kube: kube, Namespace: namespace}, nil
}

// WebApps are those of the namespace.
func (c *Clients) WebApps() typed.WebAppInterface {
	return c.Slipway.SlipwayV1alpha1().WebApps(c.Namespace)
}

// Backups are those of the namespace.
func (c *Clients) Backups() typed.BackupInterface {
	return c.Slipway.SlipwayV1alpha1().Backups(c.Namespace)
}

// BackupRuns are those of the namespace.
func (c *Clients) BackupRuns() typed.BackupRunInterface {
	return c.Slipway.SlipwayV1alpha1().BackupRuns(c.Namespace)
}

// Restores are those of the namespace.
func (c *Clients) Restores() typed.RestoreInterface {
	return c.Slipway.SlipwayV1alpha1().Restores(c.Namespace)
}

// GetWebApp reads a WebApp from the API server's storage, not from its watch cache. So the
// result includes the latest write.
func (c *Clients) GetWebApp(ctx context.Context, name string) (*slipwayv1alpha1.WebApp, error) {
	app, err := c.WebApps().Get(ctx, name, metav1.GetOptions{})
	return app, c.NotGot(err, WebAppKind, name)
}

// GetBackup reads a Backup.
func (c *Clients) GetBackup(ctx context.Context, name string) (*slipwayv1alpha1.Backup, error) {
	backup, err := c.Backups().Get(ctx, name, metav1.GetOptions{})
	return backup, c.NotGot(err, BackupKind, name)
}

// NotGot says why an object of Slipway could not be read. Without an error it returns nil.
func (c *Clients) NotGot(err error, kind *OurKind, name string) error {
	in := ""
	if kind.namespaced {
		in = fmt.Sprintf(" in namespace %q", c.Namespace)
	}
	switch {
	case apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse):
		// The path is missing, not the object: the API server does not know the kind.
		return fmt.Errorf("%s: this cluster has no %s: Slipway is not installed", kind.Ref(name), kind.kinds)
	case apierrors.IsNotFound(err):
		return &ExitError{Code: ExitNotReady, NotFound: true, Message: fmt.Sprintf(
			"Error from server (NotFound): %s.%s %q not found%s", kind.Plural(), slipwayv1alpha1.GroupName, name, in)}
	case err != nil:
		return fmt.Errorf("get %s%s: %w", kind.Ref(name), in, err)
	default:
		return nil
	}
}
