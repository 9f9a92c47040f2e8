package cli

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

// clients are the clients for one namespace.
type clients struct {
	slipway   versioned.Interface
	kube      kubernetes.Interface
	namespace string
}

// clients makes the clients from the flags and the kubeconfig, as kubectl does.
func (p *program) clients() (*clients, error) {
	config, err := p.flags.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("find the cluster: %w", err)
	}
	namespace, _, err := p.flags.ToRawKubeConfigLoader().Namespace()
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
	return &clients{slipway: slipway, kube: kube, namespace: namespace}, nil
}

func (c *clients) webApps() typed.WebAppInterface {
	return c.slipway.SlipwayV1alpha1().WebApps(c.namespace)
}

func (c *clients) backups() typed.BackupInterface {
	return c.slipway.SlipwayV1alpha1().Backups(c.namespace)
}

func (c *clients) backupRuns() typed.BackupRunInterface {
	return c.slipway.SlipwayV1alpha1().BackupRuns(c.namespace)
}

func (c *clients) restores() typed.RestoreInterface {
	return c.slipway.SlipwayV1alpha1().Restores(c.namespace)
}

// getWebApp reads a WebApp from the API server's storage, not from its watch cache. So the
// result includes the latest write.
func (c *clients) getWebApp(ctx context.Context, name string) (*slipwayv1alpha1.WebApp, error) {
	app, err := c.webApps().Get(ctx, name, metav1.GetOptions{})
	return app, c.notGot(err, webAppKind, name)
}

// getBackup reads a Backup.
func (c *clients) getBackup(ctx context.Context, name string) (*slipwayv1alpha1.Backup, error) {
	backup, err := c.backups().Get(ctx, name, metav1.GetOptions{})
	return backup, c.notGot(err, backupKind, name)
}

// notGot says why an object of Slipway could not be read.
func (c *clients) notGot(err error, kind *ourKind, name string) error {
	in := ""
	if kind.namespaced {
		in = fmt.Sprintf(" in namespace %q", c.namespace)
	}
	switch {
	case apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse):
		// The path is missing, not the object: the API server does not know the kind.
		return fmt.Errorf("%s: this cluster has no %s: Slipway is not installed", kind.ref(name), kind.kinds)
	case apierrors.IsNotFound(err):
		return &exitError{code: exitNotReady, notFound: true, message: fmt.Sprintf(
			"Error from server (NotFound): %s.%s %q not found%s", kind.plural(), slipwayv1alpha1.GroupName, name, in)}
	case err != nil:
		return fmt.Errorf("get %s%s: %w", kind.ref(name), in, err)
	default:
		return nil
	}
}
