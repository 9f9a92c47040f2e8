//go:build e2e

package e2e

import (
	"slices"
	"strings"
	"testing"
)

func TestKubectlUnderstandsAnApplication(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.Create(f.app())
	f.Kubectl("wait", "--for=condition=Ready", "webapp/"+appName, "--timeout=90s")

	f.Kubectl("scale", "webapp/"+appName, "--replicas=3")
	f.Kubectl("wait", "--for=condition=Ready", "slwapp/"+appName, "--timeout=90s")
	f.Kubectl("wait", "--for=jsonpath={.status.readyReplicas}=3", "slwapp/"+appName, "--timeout=90s")

	// kubectl get slipway lists every kind of a namespace, as a table that tells the truth.
	table := strings.Split(strings.TrimSpace(f.Kubectl("get", "slipway")), "\n")
	if len(table) != 2 {
		t.Fatalf("kubectl get slipway prints %q", table)
	}
	wantColumns := []string{"NAME", "READY", "REPLICAS", "IMAGE", "URL", "AGE", "REASON"}
	if got := strings.Fields(table[0]); !slices.Equal(got, wantColumns) {
		t.Errorf("columns %v, want %v", got, wantColumns)
	}
	wantRow := []string{"webapp.slipway.dev/" + appName, "True", "3/3", cluster.DemoImage, "http://" + appName + "." + f.Namespace + ".svc.cluster.local:8080"}
	row := strings.Fields(table[1])
	if len(row) == 0 || strings.TrimPrefix(row[0], "webapp.slipway.dev/") != appName || len(row) < 5 || !slices.Equal(row[1:5], wantRow[1:]) {
		t.Errorf("row %v, want %v", row, wantRow)
	}

	for field, want := range map[string]string{
		"webapp.spec.image":                   "container image",
		"webapp.spec.rollout.onFailure":       "Default Rollback",
		"webapp.spec.rollout.minReadySeconds": "Default 10",
		"webapp.spec.storage":                 "one volume",
		"webapp.status.conditions":            "Ready, Available, Progressing and Degraded",
		"webapp.spec.autoscaling":             "number of replicas",
		"webapp.spec.health.timeoutSeconds":   "Default 2",
	} {
		text := strings.Join(strings.Fields(f.Kubectl("explain", field)), " ")
		if !strings.Contains(text, want) {
			t.Errorf("kubectl explain %s says %q, want %q in it", field, text, want)
		}
	}
}
