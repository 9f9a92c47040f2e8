package cli

import (
	"context"
	"fmt"
	"strings"

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
	return app, c.notGot(err, "WebApps", ref(name))
}

// getBackup reads a Backup.
func (c *clients) getBackup(ctx context.Context, name string) (*slipwayv1alpha1.Backup, error) {
	backup, err := c.backups().Get(ctx, name, metav1.GetOptions{})
	return backup, c.notGot(err, "Backups", backupRef(name))
}

// notGot says why an object could not be read. kinds is the plural of its kind, object kind/name.
func (c *clients) notGot(err error, kinds, object string) error {
	_, name, _ := strings.Cut(object, "/")
	switch {
	case apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse):
		// The path is missing, not the object: the API server does not know the kind.
		return fmt.Errorf("%s: this cluster has no %s: Slipway is not installed", object, kinds)
	case apierrors.IsNotFound(err):
		return &exitError{code: exitNotReady, message: fmt.Sprintf(
			"Error from server (NotFound): %s.%s %q not found in namespace %q", strings.ToLower(kinds), slipwayv1alpha1.GroupName, name, c.namespace)}
	case err != nil:
		return fmt.Errorf("get %s in namespace %q: %w", object, c.namespace, err)
	default:
		return nil
	}
}
