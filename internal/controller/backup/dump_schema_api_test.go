//go:build apitest

package backup_test

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
)

func TestWhichDumpsTheSchemaTakes(t *testing.T) {
	namespace := env.Namespace(t)
	many := make([]string, 65)
	tests := map[string]struct {
		change func(*slipwayv1alpha1.BackupSpec)
		says   string // empty: it is taken
	}{
		"of a workload": {func(*slipwayv1alpha1.BackupSpec) {}, ""},
		"of a WebApp, with an image of its own": {func(s *slipwayv1alpha1.BackupSpec) {
			s.Source, s.Dump.Image = "webapp/shop", "registry.example.com/tools:1"
		}, ""},
		"of a claim, with an image":    {func(s *slipwayv1alpha1.BackupSpec) { s.Source, s.Dump.Image = "shop-data", "tools:1" }, ""},
		"of a claim, without an image": {func(s *slipwayv1alpha1.BackupSpec) { s.Source = "pvc/shop-data" }, "spec.dump.image is required where spec.source names no workload"},
		"of a claim, with a container": {func(s *slipwayv1alpha1.BackupSpec) {
			s.Source, s.Dump.Image, s.Dump.Container = "shop-data", "tools:1", "db"
		}, "spec.dump.container needs a workload"},
		"with include":      {func(s *slipwayv1alpha1.BackupSpec) { s.Include = []slipwayv1alpha1.BackupPath{"a"} }, "spec.dump does not go with include"},
		"with exclude":      {func(s *slipwayv1alpha1.BackupSpec) { s.Exclude = []string{"a"} }, "spec.dump does not go with include"},
		"with allowPartial": {func(s *slipwayv1alpha1.BackupSpec) { s.AllowPartial = true }, "spec.dump does not go with include"},
		"with allowEmpty":   {func(s *slipwayv1alpha1.BackupSpec) { s.AllowEmpty = true }, ""},
		"as root": {func(s *slipwayv1alpha1.BackupSpec) {
			s.Mover = &slipwayv1alpha1.BackupMover{RunAs: slipwayv1alpha1.MoverRoot}
		}, "spec.dump does not go with mover.runAs Root"},
		"as another user":               {func(s *slipwayv1alpha1.BackupSpec) { s.Mover = &slipwayv1alpha1.BackupMover{User: new(int64(70))} }, ""},
		"without a command":             {func(s *slipwayv1alpha1.BackupSpec) { s.Dump.Command = nil }, "spec.dump.command"},
		"with an empty command":         {func(s *slipwayv1alpha1.BackupSpec) { s.Dump.Command = []string{""} }, "spec.dump.command must begin with a program"},
		"with an empty argument":        {func(s *slipwayv1alpha1.BackupSpec) { s.Dump.Command = []string{"dump", ""} }, ""},
		"with too many words":           {func(s *slipwayv1alpha1.BackupSpec) { s.Dump.Command = append([]string{"dump"}, many...) }, "spec.dump.command"},
		"with a word that is too long":  {func(s *slipwayv1alpha1.BackupSpec) { s.Dump.Command = []string{strings.Repeat("x", 4097)} }, "spec.dump.command"},
		"with an image that is none":    {func(s *slipwayv1alpha1.BackupSpec) { s.Dump.Image = "UPPER" }, "spec.dump.image must name an image"},
		"with a name":                   {func(s *slipwayv1alpha1.BackupSpec) { s.Dump.Name = "Shop_2.sql.gz" }, ""},
		"with a name that leads away":   {func(s *slipwayv1alpha1.BackupSpec) { s.Dump.Name = "../shop" }, "spec.dump.name must be the name of a file"},
		"with a hidden name":            {func(s *slipwayv1alpha1.BackupSpec) { s.Dump.Name = ".slipway-restore-x" }, "spec.dump.name must be the name of a file"},
		"with a name that is too long":  {func(s *slipwayv1alpha1.BackupSpec) { s.Dump.Name = strings.Repeat("x", 129) }, "spec.dump.name"},
		"with a container that is none": {func(s *slipwayv1alpha1.BackupSpec) { s.Dump.Container = "A/b" }, "spec.dump.container must be the name of a container"},
		"with variables":                {func(s *slipwayv1alpha1.BackupSpec) { s.Dump.Env = map[string]slipwayv1alpha1.EnvValue{"PGHOST": "db"} }, ""},
		"with a variable that is none":  {func(s *slipwayv1alpha1.BackupSpec) { s.Dump.Env = map[string]slipwayv1alpha1.EnvValue{"1=2": "x"} }, "spec.dump.env"},
		"with a Secret": {func(s *slipwayv1alpha1.BackupSpec) {
			s.Dump.EnvFrom = []slipwayv1alpha1.EnvFromSource{{SecretRef: &slipwayv1alpha1.LocalReference{Name: "db"}, Keys: []string{"PGPASSWORD"}}}
		}, ""},
		"with a Secret that is none": {func(s *slipwayv1alpha1.BackupSpec) { s.Dump.EnvFrom = []slipwayv1alpha1.EnvFromSource{{}} }, "set exactly one of secretRef and configMapRef"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			b := &slipwayv1alpha1.Backup{
				ObjectMeta: metav1.ObjectMeta{GenerateName: "shop-", Namespace: namespace},
				Spec: slipwayv1alpha1.BackupSpec{
					Source: "statefulset/db", Destination: "s3://bucket", Suspend: true, Dump: &slipwayv1alpha1.BackupDump{Command: []string{"pg_dump"}},
				},
			}
			tc.change(&b.Spec)
			err := env.Client.Create(t.Context(), b)
			switch {
			case tc.says == "" && err != nil:
				t.Errorf("it is refused: %v", err)
			case tc.says == "" && b.DumpName() == "":
				t.Errorf("it has no name: %+v", b.Spec.Dump)
			case tc.says != "" && (!apierrors.IsInvalid(err) || !strings.Contains(err.Error(), tc.says)):
				t.Errorf("got %v, want %q", err, tc.says)
			}
		})
	}
}

// The name has its default from the API server, so that kubectl shows it.
func TestADumpHasAName(t *testing.T) {
	b := &slipwayv1alpha1.Backup{
		ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: env.Namespace(t)},
		Spec: slipwayv1alpha1.BackupSpec{
			Source: "statefulset/db", Destination: "s3://bucket", Suspend: true, Dump: &slipwayv1alpha1.BackupDump{Command: []string{"pg_dump"}},
		},
	}
	if err := env.Client.Create(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	if err := env.Client.Get(t.Context(), types.NamespacedName{Namespace: b.Namespace, Name: b.Name}, b); err != nil || b.Spec.Dump.Name != "dump" {
		t.Errorf("the name is %q, %v", b.Spec.Dump.Name, err)
	}
}
