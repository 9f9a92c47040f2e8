package apigateway

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/controller/apigateway/hosts"
	"github.com/slipway-dev/slipway/internal/health"
	"github.com/slipway-dev/slipway/internal/kit/webhook"
)

// ValidationPath is where the operator's webhook server validates APIGateways.
const ValidationPath = "/validate-apigateway"

// maxRefusals bounds how many routes one answer names.
const maxRefusals = 10

// SetupWebhook serves the validation of APIGateways. namespace is the operator's own.
func SetupWebhook(mgr ctrl.Manager, namespace string) {
	hook := admission.WithValidator(mgr.GetScheme(), &validator{hosts: &hosts.Book{Client: mgr.GetClient(), Namespace: namespace}})
	hook.Handler = webhook.Shared(hook.Handler, clock.RealClock{})
	mgr.GetWebhookServer().Register(ValidationPath, hook)
}

var _ admission.Validator[*slipwayv1alpha1.APIGateway] = (*validator)(nil)

// validator refuses what the schema cannot see and what a reconcile would not accept: a
// regular expression that does not compile, and a host that another APIGateway has at
// the same place. Only what a change brings in is refused, so that what has come in
// otherwise keeps nobody from mending or deleting it.
type validator struct{ hosts *hosts.Book }

// ValidateCreate refuses what is wrong.
func (v *validator) ValidateCreate(ctx context.Context, gateway *slipwayv1alpha1.APIGateway) (admission.Warnings, error) {
	return nil, v.validate(ctx, nil, gateway)
}

// ValidateUpdate refuses what is wrong and was not before.
func (v *validator) ValidateUpdate(ctx context.Context, before, gateway *slipwayv1alpha1.APIGateway) (admission.Warnings, error) {
	if equality.Semantic.DeepEqual(before.Spec, gateway.Spec) {
		return nil, nil
	}
	return nil, v.validate(ctx, before, gateway)
}

// ValidateDelete refuses nothing.
func (v *validator) ValidateDelete(context.Context, *slipwayv1alpha1.APIGateway) (admission.Warnings, error) {
	return nil, nil
}

func (v *validator) validate(ctx context.Context, before, gateway *slipwayv1alpha1.APIGateway) error {
	refused := v.newExpressionProblems(before, gateway)
	taken, err := v.takenHosts(ctx, before, gateway)
	if err != nil {
		// Any error would be a refusal, and the user has done nothing wrong: what is not seen
		// here is reported by status.
		logf.FromContext(ctx).Error(err, "cannot tell whose the hosts are, none is refused")
	}
	refused = append(refused, taken...)
	if len(refused) == 0 {
		return nil
	}
	kind := slipwayv1alpha1.SchemeGroupVersion.WithKind("APIGateway").GroupKind()
	return apierrors.NewInvalid(kind, gateway.Name, refused[:min(len(refused), maxRefusals)])
}

// newExpressionProblems are the regular expressions that do not compile.
func (v *validator) newExpressionProblems(before, gateway *slipwayv1alpha1.APIGateway) field.ErrorList {
	found := checkRoutes(gateway).problems
	known := map[health.Trouble]bool{}
	if before != nil && len(found) > 0 {
		for _, p := range checkRoutes(before).problems {
			known[p] = true
		}
	}
	var refused field.ErrorList
	for i := range gateway.Spec.Routes {
		p, wrong := found[i]
		if wrong && p.Reason == slipwayv1alpha1.ReasonInvalidRegex && !known[p] {
			refused = append(refused, field.Invalid(routePath(i), field.OmitValueType{}, p.Message))
		}
	}
	return refused
}

// takenHosts are the hosts that belong to another gateway.
func (v *validator) takenHosts(ctx context.Context, before, gateway *slipwayv1alpha1.APIGateway) (field.ErrorList, error) {
	var had []hosts.Claim
	if before != nil {
		had = claims(before)
	}
	owners := map[string]types.NamespacedName{}
	for _, claim := range claims(gateway) {
		if slices.Contains(had, claim) {
			continue
		}
		owner, err := v.hosts.Rival(ctx, client.ObjectKeyFromObject(gateway), claim)
		if err != nil {
			return nil, err
		}
		if owner != nil {
			owners[claim.Host] = *owner
		}
	}
	var refused field.ErrorList
	for i := range gateway.Spec.Routes {
		host := string(gateway.Spec.Routes[i].Host)
		if owner, taken := owners[host]; taken {
			refused = append(refused, field.Invalid(routePath(i), field.OmitValueType{}, conflictMessage(host, owner.String())))
			delete(owners, host)
		}
	}
	return refused, nil
}

func routePath(index int) *field.Path { return field.NewPath("spec", "routes").Index(index) }
