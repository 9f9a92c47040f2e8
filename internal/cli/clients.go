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

// getWebApp reads a WebApp from the API server's storage, not from its watch cache. So the
// result includes the latest write.
func (c *clients) getWebApp(ctx context.Context, name string) (*slipwayv1alpha1.WebApp, error) {
	app, err := c.webApps().Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse):
		// The path is missing, not the object: the API server does not know the kind.
		return nil, fmt.Errorf("%s: this cluster has no WebApps: Slipway is not installed", ref(name))
	case apierrors.IsNotFound(err):
		return nil, &exitError{code: exitNotReady, message: fmt.Sprintf(
			"Error from server (NotFound): webapps.%s %q not found in namespace %q", slipwayv1alpha1.GroupName, name, c.namespace)}
	case err != nil:
		return nil, fmt.Errorf("get %s in namespace %q: %w", ref(name), c.namespace, err)
	}
	return app, nil
}
