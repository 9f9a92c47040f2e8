package status

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
)

// deepStatus has messages wherever a status may have one.
type deepStatus struct {
	Message    string
	Text       string
	Conditions []metav1.Condition
	One        *deepStatus
	Many       []deepStatus
	Pointers   []*deepStatus
	unexported struct{ Message string }
}

// Of a status every message is cleaned, however deep it is, and nothing else; what it was made of stays as it is.
func TestWithoutSecretsCleansEachMessage(t *testing.T) {
	const secret, reported, text = "a password=hunter2, sorry", "a password=(secret), sorry", "password=hunter2"
	build := func(message string) deepStatus {
		leaf := func() deepStatus { return deepStatus{Message: message, Text: text} }
		pointed := leaf()
		return deepStatus{
			Message: message, Text: text, Conditions: []metav1.Condition{{Type: "A", Message: "fine"}, {Type: "B", Message: message}},
			One: &deepStatus{Text: text, Many: []deepStatus{leaf(), {Message: "fine"}, leaf()}}, Many: []deepStatus{leaf()}, Pointers: []*deepStatus{nil, &pointed},
		}
	}
	options := cmp.AllowUnexported(deepStatus{})
	before := build(secret)
	before.unexported.Message = "kept"
	want := build(reported)
	want.unexported.Message = "kept"
	if diff := cmp.Diff(want, withoutSecrets(before), options); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	untouched := build(secret)
	untouched.unexported.Message = "kept"
	if diff := cmp.Diff(untouched, before, options); diff != "" {
		t.Errorf("it changed what it was given, -want +got:\n%s", diff)
	}
	if got := withoutSecrets(&before); got.Message != reported || got == &before || before.Message != secret {
		t.Errorf("of a pointer: %+v", got)
	}
}

// A status without secrets is not copied.
func TestWithoutSecretsKeepsWhatIsClean(t *testing.T) {
	clean := &deepStatus{Message: "fine", Conditions: []metav1.Condition{{Message: `Secret "db" not found`}}, Many: []deepStatus{{}}}
	if got := withoutSecrets(clean); got != clean {
		t.Error("it was copied")
	}
	if got := withoutSecrets[*deepStatus](nil); got != nil {
		t.Errorf("of nothing: %+v", got)
	}
}

// The statuses of the kinds are cleaned by the same rule.
func TestWithoutSecretsKnowsTheKinds(t *testing.T) {
	const secret = "sent token=hunter2-x"
	condition := []metav1.Condition{{Type: "Ready", Message: secret}}
	for name, message := range map[string]string{
		"WebApp":     withoutSecrets(slipwayv1alpha1.WebAppStatus{Conditions: condition}).Conditions[0].Message,
		"APIGateway": withoutSecrets(slipwayv1alpha1.APIGatewayStatus{Conditions: condition}).Conditions[0].Message,
		"Backup":     withoutSecrets(slipwayv1alpha1.BackupStatus{Conditions: condition}).Conditions[0].Message,
		"BackupRun":  withoutSecrets(slipwayv1alpha1.BackupRunStatus{Conditions: condition}).Conditions[0].Message,
	} {
		if strings.Contains(message, "hunter2") {
			t.Errorf("%s: %s", name, message)
		}
	}
}
