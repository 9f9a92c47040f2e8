package apigateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/controller/apigateway/desired"
	"github.com/slipway-dev/slipway/internal/controller/apigateway/hosts"
	"github.com/slipway-dev/slipway/internal/health"
	"github.com/slipway-dev/slipway/internal/kit/outcome"
)

// indexClaim finds APIGateways by a host at the place where it is exposed.
const indexClaim = "slipway.dev/claim"

// place is where a gateway is exposed together with others, and which part of that; it is empty where the gateway is alone:
// behind a Service of its own. Ingresses are one place in the whole cluster, of which each class is a part. An Ingress that
// names no class may be of any. So is an HTTPRoute that names no listener at each of its Gateway.
func place(gateway *slipwayv1alpha1.APIGateway) (place, part string) {
	expose := gateway.Spec.Expose
	switch desired.ExposeType(gateway) {
	case slipwayv1alpha1.ExposeIngress:
		if expose != nil && expose.IngressClassName != nil {
			part = *expose.IngressClassName
		}
		return "Ingress", part
	case slipwayv1alpha1.ExposeHTTPRoute:
		parent := expose.Gateway
		if parent == nil {
			return "", ""
		}
		return strings.Join([]string{"HTTPRoute", cmp.Or(parent.Namespace, gateway.Namespace), parent.Name}, "/"), parent.SectionName
	case slipwayv1alpha1.ExposeNodePort, slipwayv1alpha1.ExposeLoadBalancer, slipwayv1alpha1.ExposeClusterIP:
	}
	return "", ""
}

// claims are the hosts that a gateway asks for. The path is no part of a claim: an Ingress and an HTTPRoute send a host as a
// whole to one gateway.
func claims(gateway *slipwayv1alpha1.APIGateway) []hosts.Claim {
	at, part := place(gateway)
	if at == "" {
		return nil
	}
	var list []hosts.Claim
	for _, name := range desired.Hosts(gateway) {
		if !desired.IsAddress(name) { // which nothing exposes
			list = append(list, hosts.Claim{Place: at, Part: part, Host: name})
		}
	}
	return list
}

func claimIndex(object client.Object) []string {
	gateway, ok := object.(*slipwayv1alpha1.APIGateway)
	if !ok {
		return nil
	}
	var values []string
	for _, claim := range claims(gateway) {
		values = append(values, claim.Index())
	}
	for _, claim := range certificateClaims(gateway) {
		values = append(values, claim.Index())
	}
	return values
}

// certificateClaims are the hosts of the certificates that an Ingress has beside its rules. Nobody gets a host by them.
func certificateClaims(gateway *slipwayv1alpha1.APIGateway) []hosts.Claim {
	if desired.ExposeType(gateway) != slipwayv1alpha1.ExposeIngress {
		return nil
	}
	at, part := place(gateway)
	var list []hosts.Claim
	for i := range gateway.Spec.TLS {
		for _, host := range gateway.Spec.TLS[i].Hosts {
			list = append(list, hosts.Claim{Place: at, Part: part, Host: string(host)})
		}
	}
	return list
}

// older tells which of two gateways was made first.
func older(a, b *slipwayv1alpha1.APIGateway) int {
	made := a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
	return cmp.Or(made, strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
}

// present lists the gateways that there are, the oldest first.
func (r *Reconciler) present(ctx context.Context) ([]hosts.Present, error) {
	list := &slipwayv1alpha1.APIGatewayList{}
	if err := r.kit.Client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list APIGateways: %w", err)
	}
	gateways := make([]*slipwayv1alpha1.APIGateway, 0, len(list.Items))
	for i := range list.Items {
		if list.Items[i].DeletionTimestamp.IsZero() {
			gateways = append(gateways, &list.Items[i])
		}
	}
	slices.SortFunc(gateways, older)
	all := make([]hosts.Present, len(gateways))
	for i, gateway := range gateways {
		all[i] = hosts.Present{Gateway: holder(gateway), Claims: claims(gateway)}
	}
	return all, nil
}

// holder is a gateway as records know it.
func holder(gateway *slipwayv1alpha1.APIGateway) hosts.Gateway {
	return hosts.Gateway{NamespacedName: client.ObjectKeyFromObject(gateway), UID: gateway.UID}
}

// takeHosts gives the gateway the hosts that it asks for, as far as they belong to nobody else.
func (r *Reconciler) takeHosts(ctx context.Context, s *scope) error {
	key := client.ObjectKeyFromObject(s.gateway)
	s.conflicts, s.withheld, s.left = map[string]health.Trouble{}, map[string]bool{}, map[string]bool{}
	err := r.hosts.Begin(ctx, r.present)
	if err == nil {
		s.records, err = r.hosts.Mine(ctx, key)
	}
	inherits := false
	if err == nil {
		inherits, err = r.inherits(ctx, s)
	}
	if err != nil || !inherits {
		s.hostsUnknown = true
		return err
	}
	if s.exposeRefusal != nil && len(s.existingHTTPRoutes()) == 0 {
		return nil // what may not be exposed takes nobody else's place
	}
	s.claims = claims(s.gateway)
	var errs []error
	for _, claim := range s.claims {
		owner, err := r.ownerOf(ctx, s, claim)
		switch {
		case errors.Is(err, hosts.ErrFull):
			s.conflicts[claim.Host], s.withheld[claim.Host] = tooManyHosts(claim.Host, key.Namespace), true
			s.recheck.After(recordRecheck)
		case owner != nil:
			s.conflicts[claim.Host], s.withheld[claim.Host] = hostConflict(claim.Host, owner.String()), true
		default:
			errs = append(errs, err)
		}
	}
	errs = append(errs, r.withholdTLS(ctx, s))
	err = errors.Join(errs...)
	s.hostsUnknown = err != nil
	return err
}

// ownerOf takes a host, or returns whose it is. What serves on without being permitted keeps what it has, and takes nothing more.
func (r *Reconciler) ownerOf(ctx context.Context, s *scope, claim hosts.Claim) (*types.NamespacedName, error) {
	of := holder(s.gateway)
	if s.exposeRefusal != nil {
		return r.hosts.Rival(ctx, of.NamespacedName, claim)
	}
	owner, err := r.hosts.Take(ctx, of, claim, s.records)
	if owner == nil || err != nil {
		return owner, err
	}
	if gone, err := r.isLeft(ctx, s, *owner); !gone || err != nil {
		return owner, err
	}
	if err := r.hosts.Forget(ctx, claim, owner.Namespace); err != nil {
		return owner, err
	}
	return r.hosts.Take(ctx, of, claim, s.records)
}

// isLeft reports whether a host was left behind: its owner is where this operator does not work, so that nobody gives it up, and the
// namespace does not exist. An operator that may not read namespaces keeps it.
func (r *Reconciler) isLeft(ctx context.Context, s *scope, owner types.NamespacedName) (bool, error) {
	err := r.kit.Client.Get(ctx, owner, &slipwayv1alpha1.APIGateway{}, client.DisableReadYourWritesConsistency)
	if err == nil || apierrors.IsNotFound(err) {
		return false, nil
	}
	if gone, asked := s.left[owner.Namespace]; asked {
		return gone, nil
	}
	s.recheck.After(recordRecheck)
	err = r.kit.Live.Get(ctx, types.NamespacedName{Name: owner.Namespace}, &corev1.Namespace{})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) {
		return false, outcome.Classify(fmt.Sprintf("namespace %q", owner.Namespace), err)
	}
	s.left[owner.Namespace] = apierrors.IsNotFound(err)
	return s.left[owner.Namespace], nil
}

// inherits reports whether a gateway may have the hosts of one of the same name that there was before. It may while an Ingress or an
// HTTPRoute of that one is there, which a namespace that was made again does not have. Otherwise they are given up, and others who
// wait for them come first.
func (r *Reconciler) inherits(ctx context.Context, s *scope) (bool, error) {
	of := holder(s.gateway)
	if !s.records.HasFormer(of) {
		return true, nil
	}
	if exposed, err := r.stillExposed(ctx, of.NamespacedName); exposed || err != nil {
		return exposed, err
	}
	s.recheck.After(formerRecheck)
	return false, r.hosts.ReleaseFormer(ctx, of, s.records)
}

// withholdTLS looks for hosts of certificates that belong to others: some controllers of Ingresses serve a certificate for
// every host that is beside it, whether a rule has that host or not.
func (r *Reconciler) withholdTLS(ctx context.Context, s *scope) error {
	for _, claim := range certificateClaims(s.gateway) {
		rival, err := r.hosts.Rival(ctx, client.ObjectKeyFromObject(s.gateway), claim)
		if err != nil {
			return err
		}
		if rival != nil {
			s.withheld[claim.Host] = true
		}
	}
	return nil
}

// releaseHosts gives up the hosts that the gateway does not ask for any more, once nothing exposes them.
func (r *Reconciler) releaseHosts(ctx context.Context, s *scope) error {
	if s.hostsUnknown || s.lingers {
		return nil
	}
	return r.hosts.Release(ctx, client.ObjectKeyFromObject(s.gateway), s.claims, s.records)
}

// recordRecheck is when to look again whether what exposed a gateway that has gone is gone too, and whether a namespace may have
// further hosts. Of what somebody orphaned no event tells.
const recordRecheck = time.Minute

// formerRecheck is when a gateway asks for hosts that one of the same name has given up.
const formerRecheck = time.Second

// giveUpHosts gives up the hosts of a gateway that has gone, once nothing exposes them. It returns when to look again.
func (r *Reconciler) giveUpHosts(ctx context.Context, key types.NamespacedName) (outcome.Recheck, error) {
	mine, err := r.hosts.Mine(ctx, key)
	if err != nil || mine.None() {
		return 0, err
	}
	exposed, err := r.stillExposed(ctx, key)
	if err != nil {
		return 0, err
	}
	if exposed {
		return outcome.Recheck(recordRecheck), nil
	}
	return 0, r.hosts.Release(ctx, key, nil, mine)
}

// stillExposed reports whether an Ingress or an HTTPRoute of a gateway is left.
func (r *Reconciler) stillExposed(ctx context.Context, key types.NamespacedName) (bool, error) {
	ofGateway := client.MatchingLabels{slipwayv1alpha1.LabelAPIGateway: key.Name}
	of := []client.ListOption{client.InNamespace(key.Namespace), ofGateway, client.UnsafeDisableDeepCopy}
	ingresses := &networkingv1.IngressList{}
	if err := r.kit.Client.List(ctx, ingresses, of...); err != nil {
		return false, fmt.Errorf("list the Ingresses: %w", err)
	}
	applier, err := r.gatewayAPI.applier()
	if err != nil || applier == nil {
		return len(ingresses.Items) > 0, err
	}
	routes := &gatewayv1.HTTPRouteList{}
	if err := applier.Client.List(ctx, routes, of...); err != nil {
		return false, fmt.Errorf("list the HTTPRoutes: %w", err)
	}
	return len(ingresses.Items)+len(routes.Items) > 0, nil
}
