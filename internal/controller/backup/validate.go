package backup

import (
	"context"
	"errors"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/backup/mover"
	"github.com/slipway-dev/slipway/internal/children"
	"github.com/slipway-dev/slipway/internal/kit/webhook"
	"github.com/slipway-dev/slipway/internal/schedule"
	"github.com/slipway-dev/slipway/internal/text"
)

// ValidationPath is where the operator's webhook server validates Backups.
const ValidationPath = "/validate-backup"

// maxWarning is how much of a warning kubectl shows.
const maxWarning = 250

// problem is something that is wrong with a spec, and that the schema cannot see.
type problem struct {
	// field is the path of the field below spec.
	field string
	// message says what is wrong, and what would be right.
	message string
}

// problems are all that is wrong with a spec. The webhook refuses what a reconcile would not accept: both ask here.
func problems(spec *slipwayv1alpha1.BackupSpec) []problem {
	var found []problem
	note := func(field, message string) { found = append(found, problem{field, message}) }
	place, err := mover.ParseDestination(spec.Destination)
	if err != nil {
		note("destination", err.Error())
	}
	source, err := mover.ParseSource(spec.Source)
	if err != nil {
		note("source", err.Error())
	}
	if err := mover.CheckOwnClaim(place, source.Claims()...); err != nil {
		note("destination", err.Error())
	}
	if spec.Schedule != "" {
		if _, err := schedule.Parse(spec.Schedule, spec.TimeZone); err != nil {
			found = append(found, problemOf(err))
		}
	}
	if drill := spec.Drill(); drill != nil && drill.Schedule != "" {
		if _, err := schedule.Parse(drill.Schedule, spec.TimeZone); err != nil {
			if p := problemOfDrill(err); !slices.Contains(found, p) { // of the zone spec.schedule may have reported already
				found = append(found, p)
			}
		}
	}
	if spec.RetentionPolicy != "" {
		if _, err := schedule.ParseRetentionPolicy(spec.RetentionPolicy); err != nil {
			found = append(found, problemOf(err))
		}
	}
	return append(found, ofContent(spec)...)
}

// ofContent are the problems of what is copied.
func ofContent(spec *slipwayv1alpha1.BackupSpec) []problem {
	var found []problem
	if spec.Dump != nil {
		if wrong := children.EnvProblem(spec.Dump.Env, spec.Dump.EnvFrom); wrong != "" {
			found = append(found, problem{"dump.env", wrong})
		}
	}
	for _, pattern := range spec.Exclude {
		if !isPattern(pattern) {
			found = append(found, problem{"exclude", text.Printable(pattern) +
				" is no pattern: it must name something, hold no empty element, and close each '[' with ']', such as *.tmp, " +
				"cache/ or a/**/b"})
		}
	}
	return found
}

// problemOf makes an error of package schedule one of the spec.
func problemOf(err error) problem {
	var of *schedule.Error
	if errors.As(err, &of) {
		return problem{of.Field, of.Reason}
	}
	return problem{schedule.FieldSchedule, err.Error()}
}

// problemOfDrill is the same of the schedule of drills. Its zone is that of spec.schedule.
func problemOfDrill(err error) problem {
	p := problemOf(err)
	if p.field == schedule.FieldSchedule {
		p.field = "verify.drill.schedule"
	}
	return p
}

// isPattern reports whether slipway-backup takes a pattern of spec.exclude: its test compares the two.
func isPattern(pattern string) bool {
	trimmed := strings.TrimPrefix(strings.TrimSuffix(pattern, "/"), "/")
	for element := range strings.SplitSeq(trimmed, "/") {
		if _, err := path.Match(element, "x"); err != nil || element == "" {
			return false
		}
	}
	return true
}

// SetupWebhook serves the validation of Backups.
func SetupWebhook(mgr ctrl.Manager) {
	hook := admission.WithValidator(mgr.GetScheme(), &validator{clock: clock.RealClock{}})
	hook.Handler = webhook.Shared(hook.Handler, clock.RealClock{})
	mgr.GetWebhookServer().Register(ValidationPath, hook)
}

var _ admission.Validator[*slipwayv1alpha1.Backup] = (*validator)(nil)

// validator refuses what the schema cannot see and what a reconcile would not accept. Only what a change brings in is refused,
// so that what has come in otherwise keeps nobody from mending or deleting it.
type validator struct{ clock clock.PassiveClock }

// ValidateCreate refuses what is wrong.
func (v *validator) ValidateCreate(_ context.Context, backup *slipwayv1alpha1.Backup) (admission.Warnings, error) {
	return v.warnings(backup), refusal(nil, backup)
}

// ValidateUpdate refuses what is wrong and was not before. A Backup that is being deleted is not looked at: its finalizer has to
// go, whatever its spec says.
func (v *validator) ValidateUpdate(_ context.Context, before, backup *slipwayv1alpha1.Backup) (admission.Warnings, error) {
	if !backup.DeletionTimestamp.IsZero() || equality.Semantic.DeepEqual(before.Spec, backup.Spec) {
		return nil, nil
	}
	var warnings admission.Warnings
	if schedulesOf(before) != schedulesOf(backup) || before.Spec.TimeZone != backup.Spec.TimeZone {
		warnings = v.warnings(backup)
	}
	return warnings, refusal(before, backup)
}

// ValidateDelete refuses nothing.
func (v *validator) ValidateDelete(context.Context, *slipwayv1alpha1.Backup) (admission.Warnings, error) {
	return nil, nil
}

// schedulesOf are those of runs and of drills.
func schedulesOf(backup *slipwayv1alpha1.Backup) [2]string {
	schedules := [2]string{backup.Spec.Schedule}
	if drill := backup.Drill(); drill != nil {
		schedules[1] = drill.Schedule
	}
	return schedules
}

// warnings are what of the schedules may not be what their author meant.
func (v *validator) warnings(backup *slipwayv1alpha1.Backup) admission.Warnings {
	var warnings admission.Warnings
	for i, expression := range schedulesOf(backup) {
		parsed, err := schedule.Parse(expression, backup.Spec.TimeZone)
		if expression == "" || err != nil {
			continue // there is none, or it is refused
		}
		at := [2]string{"spec.schedule: ", "spec.verify.drill.schedule: "}[i]
		for _, advice := range parsed.Advice(expression, v.clock.Now()) {
			warnings = append(warnings, text.Cut(at+text.Printable(advice), maxWarning))
		}
	}
	return warnings
}

// refusal names all that is wrong and was not before.
func refusal(before, backup *slipwayv1alpha1.Backup) error {
	known := map[problem]bool{}
	if before != nil {
		for _, p := range problems(&before.Spec) {
			known[p] = true
		}
	}
	var refused field.ErrorList
	for _, p := range problems(&backup.Spec) {
		if !known[p] {
			refused = append(refused,
				field.Invalid(field.NewPath("spec", strings.Split(p.field, ".")...), field.OmitValueType{}, p.message))
		}
	}
	if len(refused) == 0 {
		return nil
	}
	return apierrors.NewInvalid(slipwayv1alpha1.SchemeGroupVersion.WithKind("Backup").GroupKind(), backup.Name, refused)
}
