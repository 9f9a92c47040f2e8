//go:build postgres

package postgres

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-dev/slipway/internal/testing/livetest"
)

const (
	// database is the StatefulSet of the server that is backed up, its Service, and the pod that is its first.
	database, databasePod = "db", "db-0"
	// container is the one of the server in its pods.
	container = "postgres"
	// dataFolder is where the server keeps its data, on the volume that is mounted at /data.
	dataFolder = "/data/db"
	// claimSize is that of every volume.
	claimSize = "2Gi"
	// load is the Deployment of the clients.
	load = "load"
	// ledgers is the database that the clients write to.
	ledgers = "bench"
	// rate is how many transactions a second the clients make at most: a database that is in use, and room for the others
	// on a machine with two processors.
	rate = 50
	// scale is that of pgbench: 100,000 accounts each.
	scale = 2
)

// start is what a server does: it makes its data where there is none, and serves. With checksums a page that was not
// written as a whole does not pass for a good one.
const start = `set -eu
if [ ! -s "$PGDATA/PG_VERSION" ]; then
  initdb --auth=trust --data-checksums --username=app >/dev/null
  echo 'host all all all trust' >>"$PGDATA/pg_hba.conf" # the namespace lives as long as the test
fi
exec postgres -c listen_addresses='*' -c unix_socket_directories=/tmp -c shared_buffers=32MB`

// fixture is one test with a namespace of its own.
type fixture struct{ *livetest.Fixture }

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{livetest.New(t, cluster)}
	f.Patience = 5 * time.Minute
	return f
}

// withDatabase is a namespace with an S3 server, and a database that clients write to until the test ends. The pods of the
// server are changed as asked.
func withDatabase(t *testing.T, change ...func(*appsv1.StatefulSetSpec)) *fixture {
	t.Helper()
	f := newFixture(t)
	f.StartS3()
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: database}, Spec: appsv1.StatefulSetSpec{
		ServiceName: database,
		Selector:    &metav1.LabelSelector{MatchLabels: map[string]string{"app": database}},
		Template:    corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": database}}, Spec: server("", dataFolder)},
		VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{
			ObjectMeta: metav1.ObjectMeta{Name: "data"}, Spec: livetest.ClaimSpec(claimSize),
		}},
	}}
	for _, c := range change {
		c(&set.Spec)
	}
	f.Create(set, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: database}, Spec: corev1.ServiceSpec{
		Selector: map[string]string{"app": database}, Ports: []corev1.ServicePort{{Port: 5432}},
	}})
	f.ready(databasePod)
	f.sh(databasePod, fmt.Sprintf("createdb %[1]s && pgbench --initialize --quiet --scale=%[2]d %[1]s", ledgers, scale))
	f.startLoad()
	return f
}

// server is the pod of a server with its data in a folder of a volume. Without a claim the volume comes from a template.
// There is no fsGroup: it would open the data to a group, and the server refuses that.
func server(claim, folder string) corev1.PodSpec {
	spec := pod("/bin/sh", "-c", start)
	c := &spec.Containers[0]
	c.Name = container
	c.Env = append(c.Env, corev1.EnvVar{Name: "PGDATA", Value: folder}, corev1.EnvVar{Name: "PGHOST", Value: "/tmp"})
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: "data", MountPath: "/data"})
	c.ReadinessProbe = &corev1.Probe{PeriodSeconds: 1, TimeoutSeconds: 5, ProbeHandler: corev1.ProbeHandler{
		Exec: &corev1.ExecAction{Command: []string{"pg_isready", "--quiet"}},
	}}
	if claim != "" {
		spec.Volumes = append(spec.Volumes, corev1.Volume{Name: "data", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
		}})
	}
	return spec
}

// pod runs a command in the image of the database, at the restricted Pod Security level, on a read-only root file system.
func pod(command ...string) corev1.PodSpec {
	return corev1.PodSpec{
		TerminationGracePeriodSeconds: ptr(int64(10)),
		AutomountServiceAccountToken:  ptr(false),
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot: ptr(true), RunAsUser: ptr(int64(65532)), RunAsGroup: ptr(int64(65532)),
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		Containers: []corev1.Container{{
			Name: "client", Image: os.Getenv("POSTGRES_IMAGE"), Command: command,
			Env: []corev1.EnvVar{{Name: "PGUSER", Value: "app"}, {Name: "HOME", Value: "/tmp"}},
			SecurityContext: &corev1.SecurityContext{
				AllowPrivilegeEscalation: ptr(false), ReadOnlyRootFilesystem: ptr(true),
				Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			},
			VolumeMounts: []corev1.VolumeMount{{Name: "tmp", MountPath: "/tmp"}},
		}},
		Volumes: []corev1.Volume{{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
	}
}

// startLoad lets two clients write all the time. -n keeps the history that is there.
func (f *fixture) startLoad() {
	f.Helper()
	labels := map[string]string{"app": load}
	f.Create(&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: load}, Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pod(
			"pgbench", "-h", database, "-n", "-c", "2", "-R", fmt.Sprint(rate), "-T", "86400", ledgers,
		)},
	}})
	f.moves()
}

// moves waits until clients have committed something new, and returns how much there is: a client that asks afterwards
// sees at least as much.
func (f *fixture) moves() (rows int64) {
	f.Helper()
	first := int64(-1)
	f.Eventually(func() error {
		now, err := f.ledger(databasePod)
		if err != nil {
			return err
		}
		if first < 0 {
			first = now.rows
		}
		if rows = now.rows; rows <= first {
			return fmt.Errorf("the history has %d entries, and had %d before: no client writes", rows, first)
		}
		return nil
	})
	return rows
}

// fresh starts a server on the data in a folder of a volume, or on none, and waits until it serves.
func (f *fixture) fresh(name, claim, folder string) {
	f.Helper()
	f.Create(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: server(claim, folder)})
	f.ready(name)
}

// ready waits until the server in a pod serves.
func (f *fixture) ready(name string) {
	f.Helper()
	f.Eventually(func() error { return f.serves(name) })
}

// serves tells whether the server in a pod serves, and if not, what it said last.
func (f *fixture) serves(name string) error {
	p := &corev1.Pod{}
	if err := f.Get(name, p); err != nil {
		return err
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
			return nil
		}
	}
	said, _ := f.RunKubectl(f.Context(), "logs", name, "--tail=5")
	return fmt.Errorf("pod %s is not ready, %s: %s", name, p.Status.Phase, said)
}

// sh runs a script of a shell in the container of a server, and returns what it prints.
func (f *fixture) sh(name, script string) string {
	f.Helper()
	output, err := f.try(name, script)
	if err != nil {
		f.Fatalf("%s in pod %s: %v\n%s", script, name, err, output)
	}
	return output
}

// try does so where the script may fail.
func (f *fixture) try(name, script string) (string, error) {
	output, err := f.RunKubectl(f.Context(), "exec", name, "-c", container, "--", "/bin/sh", "-c", script)
	return strings.TrimSpace(output), err
}

func ptr[T any](value T) *T { return &value }
