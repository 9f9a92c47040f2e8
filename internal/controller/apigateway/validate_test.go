package apigateway

import (
	"context"
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/controller/apigateway/hosts"
)

// brokenCache is a cache that is not filled, or is being stopped.
type brokenCache struct{ client.Client }

func (brokenCache) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return errors.New("the cache is not started")
}

func TestTheWebhookHoldsNobodyUpWhileItCannotSeeTheOthers(t *testing.T) {
	v := &validator{hosts: &hosts.Book{Client: brokenCache{}}}
	gateway := &slipwayv1alpha1.APIGateway{}
	gateway.Spec.Routes = []slipwayv1alpha1.Route{{Host: "api.example.com", Path: "/users/"}}
	if _, err := v.ValidateCreate(t.Context(), gateway); err != nil {
		t.Errorf("a host was refused: %v", err)
	}
	gateway.Spec.Routes[0].Path, gateway.Spec.Routes[0].PathType = "/(", slipwayv1alpha1.PathRegularExpression
	if _, err := v.ValidateCreate(t.Context(), gateway); !apierrors.IsInvalid(err) {
		t.Errorf("the answer to an expression that does not compile is %v", err)
	}
}
