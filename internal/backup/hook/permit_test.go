package hook_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/backup/hook"
)

// pod is one of the StatefulSet db, with an annotation, whose container db mounts the claim data-db-0.
func pod(annotation string, change ...func(*corev1.Pod)) corev1.Pod {
	yes := true
	p := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "db-0", Namespace: "team", UID: "uid-0", Annotations: map[string]string{slipwayv1alpha1.AnnotationBackupHooks: annotation},
			OwnerReferences: []metav1.OwnerReference{{Kind: "StatefulSet", Name: "db", UID: "set", Controller: &yes}},
		},
		Spec: corev1.PodSpec{
			InitContainers: []corev1.Container{{Name: "init"}},
			Containers: []corev1.Container{
				{Name: "sidecar"},
				{Name: "db", VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}},
			},
			EphemeralContainers: []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debug"}}},
			Volumes: []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data-db-0"},
			}}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
	if annotation == "" {
		p.Annotations = nil
	}
	for _, c := range change {
		c(&p)
	}
	return p
}

func TestAPodAllowsExactlyWhatItsAnnotationSays(t *testing.T) {
	const freeze = `[{"container":"db","command":["/bin/freeze","--now"]}]`
	command := []string{"/bin/freeze", "--now"}
	tests := map[string]struct {
		annotation, container string
		command               []string
		refused               string
	}{
		"the same":                          {annotation: freeze},
		"one of several":                    {annotation: `[{"container":"db","command":["/x"]},{"command":["/bin/freeze","--now"],"container":"db"}]`},
		"with white space between":          {annotation: " [ { \"container\" : \"db\" , \"command\" : [ \"/bin/freeze\" , \"--now\" ] } ]\n"},
		"with escapes":                      {annotation: `[{"container":"\u0064b","command":["\/bin\/freeze","--now"]}]`},
		"no annotation":                     {refused: "have no annotation"},
		"an empty list":                     {annotation: `[]`, refused: "lists other commands"},
		"another container":                 {annotation: freeze, container: "sidecar", refused: "lists other commands"},
		"another container that is allowed": {annotation: `[{"container":"sidecar","command":["/bin/freeze","--now"]}]`, refused: "lists other commands"},
		"one word more":                     {annotation: freeze, command: []string{"/bin/freeze", "--now", "x"}, refused: "lists other commands"},
		"one word less":                     {annotation: freeze, command: []string{"/bin/freeze"}, refused: "lists other commands"},
		"an empty word more":                {annotation: freeze, command: []string{"/bin/freeze", "--now", ""}, refused: "lists other commands"},
		"words joined":                      {annotation: freeze, command: []string{"/bin/freeze --now"}, refused: "lists other commands"},
		"words cut otherwise":               {annotation: freeze, command: []string{"/bin/freeze", "--", "now"}, refused: "lists other commands"},
		"words in another order":            {annotation: freeze, command: []string{"--now", "/bin/freeze"}, refused: "lists other commands"},
		"another case":                      {annotation: freeze, command: []string{"/bin/Freeze", "--now"}, refused: "lists other commands"},
		"a path that means the same":        {annotation: freeze, command: []string{"/bin/../bin/freeze", "--now"}, refused: "lists other commands"},
		"a space at the end":                {annotation: freeze, command: []string{"/bin/freeze", "--now "}, refused: "lists other commands"},
		"a character that looks the same":   {annotation: freeze, command: []string{"/bin/freeze", "‐‐now"}, refused: "lists other commands"},
		"a pattern":                         {annotation: `[{"container":"*","command":["*"]}]`, refused: "lists other commands"},
		"no container named":                {annotation: `[{"command":["/bin/freeze","--now"]}]`, refused: "container must be"},
		"an empty container":                {annotation: `[{"container":"","command":["/bin/freeze","--now"]}]`, refused: "container must be"},
		"no command":                        {annotation: `[{"container":"db"}]`, refused: "command must be"},
		"an empty command":                  {annotation: `[{"container":"db","command":[]}]`, refused: "command must be"},
		"a command that is null":            {annotation: `[{"container":"db","command":null}]`, refused: "command must be"},
		"a word that is null":               {annotation: `[{"container":"db","command":["/bin/freeze",null]}]`, refused: "must be a text"},
		"a word that is a number":           {annotation: `[{"container":"db","command":["/bin/freeze",1]}]`, refused: "must be a text"},
		"a command that is a text":          {annotation: `[{"container":"db","command":"/bin/freeze --now"}]`, refused: "command must be"},
		"fields in capitals":                {annotation: `[{"Container":"db","COMMAND":["/bin/freeze","--now"]}]`, refused: `there is no field "Container"`},
		"a field twice":                     {annotation: `[{"container":"x","container":"db","command":["/bin/freeze","--now"]}]`, refused: "stands twice"},
		"another field":                     {annotation: `[{"container":"db","command":["/bin/freeze","--now"],"when":"never"}]`, refused: `there is no field "when"`},
		"an object, not a list":             {annotation: `{"container":"db","command":["/bin/freeze","--now"]}`, refused: "not a JSON list"},
		"something behind the list":         {annotation: freeze + freeze, refused: "something follows"},
		"a good entry beside a bad one":     {annotation: `[{"container":"db","command":["/bin/freeze","--now"]},{}]`, refused: "entry 2"},
		"a list that does not end":          {annotation: freeze[:len(freeze)-1], refused: "cannot be read"},
		"YAML":                              {annotation: "- container: db\n  command: [/bin/freeze, --now]", refused: "cannot be read"},
		"half a character":                  {annotation: `[{"container":"db","command":["/bin/freeze","\ud800"]}]`, command: []string{"/bin/freeze", "\ufffd"}, refused: "cannot be compared"},
		"a zero byte":                       {annotation: `[{"container":"db","command":["/bin/freeze","a\u0000b"]}]`, command: []string{"/bin/freeze", "a\x00b"}, refused: "cannot be compared"},
		"too long":                          {annotation: strings.Repeat(" ", 65<<10) + freeze, refused: "longer than"},
		"too many":                          {annotation: "[" + strings.Repeat(freeze[1:len(freeze)-1]+",", 64) + freeze[1:], refused: "more than"},
		"very deep":                         {annotation: strings.Repeat("[", 60<<10), refused: "cannot be read"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			asked := command
			if tc.command != nil {
				asked = tc.command
			}
			container := "db"
			if tc.container != "" {
				container = tc.container
			}
			p := pod(tc.annotation)
			got := hook.Refusal(&p, container, asked, hook.FieldBefore)
			if tc.refused == "" {
				if got != nil {
					t.Errorf("refused: %s", got.Message)
				}
				return
			}
			if got == nil || got.Reason != slipwayv1alpha1.ReasonHookNotAllowed || !strings.Contains(got.Message, tc.refused) {
				t.Fatalf("got %+v, want a refusal with %q", got, tc.refused)
			}
			for _, named := range []string{slipwayv1alpha1.AnnotationBackupHooks, `StatefulSet "db"`, asked[0], hook.FieldBefore} {
				if !strings.Contains(got.Message, named) {
					t.Errorf("the message does not name %q: %s", named, got.Message)
				}
			}
		})
	}
}
