package apigateway

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/health"
)

// ValidationPath is where the operator's webhook server validates APIGateways.
const ValidationPath = "/validate-apigateway"

// maxRefusals bounds how many routes one answer names.
const maxRefusals = 10

// SetupWebhook serves the validation of APIGateways.
func SetupWebhook(mgr ctrl.Manager) {
	mgr.GetWebhookServer().Register(ValidationPath, admission.WithValidator(mgr.GetScheme(), &validator{reader: mgr.GetClient()}))
}

var _ admission.Validator[*slipwayv1alpha1.APIGateway] = (*validator)(nil)

// validator refuses what the schema cannot see and what a reconcile would not accept: a
// regular expression that does not compile, and a host that another APIGateway has at
// the same place. Only what a change brings in is refused, so that what has come in
// otherwise keeps nobody from mending or deleting it.
type validator struct {
	reader client.Reader
	// compiles is held while routes are compiled: many requests at a time must not take more memory than one.
	compiles sync.Mutex
}

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
		// here is told by status.
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
	v.compiles.Lock()
	defer v.compiles.Unlock()
	known := map[health.Trouble]bool{}
	if before != nil {
		for _, p := range checkRoutes(before).problems {
			known[p] = true
		}
	}
	problems := checkRoutes(gateway).problems
	var refused field.ErrorList
	for i := range gateway.Spec.Routes {
		p, found := problems[i]
		if found && p.Reason == slipwayv1alpha1.ReasonInvalidRegex && !known[p] {
			refused = append(refused, field.Invalid(routePath(i), field.OmitValueType{}, p.Message))
		}
	}
	return refused
}

// takenHosts are the hosts that another gateway has at the same place, of whatever age:
// a host is not taken from somebody by an edit either.
func (v *validator) takenHosts(ctx context.Context, before, gateway *slipwayv1alpha1.APIGateway) (field.ErrorList, error) {
	at := place(gateway)
	if at == "" {
		return nil, nil
	}
	var had []string
	if before != nil {
		had = claims(before)
	}
	var refused field.ErrorList
	seen := map[string]bool{}
	for i := range gateway.Spec.Routes {
		host := string(gateway.Spec.Routes[i].Host)
		wanted := claim(at, host)
		if seen[host] || slices.Contains(had, wanted) {
			continue
		}
		seen[host] = true
		others, err := claimants(ctx, v.reader, wanted)
		if err != nil {
			return nil, err
		}
		for k := range others {
			other := &others[k]
			if other.DeletionTimestamp.IsZero() && client.ObjectKeyFromObject(other) != client.ObjectKeyFromObject(gateway) {
				refused = append(refused, field.Invalid(routePath(i).Child("host"), host,
					fmt.Sprintf("it belongs to APIGateway %q, which is exposed at the same place", client.ObjectKeyFromObject(other))))
				break
			}
		}
	}
	return refused, nil
}

func routePath(index int) *field.Path { return field.NewPath("spec", "routes").Index(index) }
