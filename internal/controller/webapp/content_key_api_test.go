//go:build apitest

package webapp_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/controller/webapp/desired"
	"github.com/slipway-dev/slipway/internal/kit/contentkey"
	"github.com/slipway-dev/slipway/internal/testing/environment"
	"github.com/slipway-dev/slipway/internal/testing/fault"
	"github.com/slipway-dev/slipway/internal/testing/requests"
)

// keyed starts an operator with the installation's key in the namespace own, whose writes
// are seen.
func (f *fixture) keyed(own string, change ...func(*rest.Config)) (*environment.Operator, *fault.Gate) {
	f.Helper()
	gate := fault.NewGate(nil)
	started := env.StartOperatorWith(f.T, func(config *rest.Config, options *environment.Options) {
		options.Namespaces, options.Namespace, options.ContentKeys = []string{f.namespace}, own, nil
		gate.Wrap(config)
		for _, c := range change {
			c(config)
		}
	})
	return started, gate
}

// theKey is the Secret with the installation's key.
func (f *fixture) theKey(own string) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	err := env.Client.Get(f.Context(), client.ObjectKey{Namespace: own, Name: contentkey.SecretName}, secret)
	return secret, err
}

// hashes are those that the Deployment records, by use.
func (f *fixture) hashes(d *appsv1.Deployment) map[string]string {
	f.Helper()
	found := map[string]string{}
	if err := json.Unmarshal([]byte(d.Annotations[desired.AnnotationConfigVersions]), &found); err != nil {
		f.Fatalf("recorded is %q: %v", d.Annotations[desired.AnnotationConfigVersions], err)
	}
	for id, text := range found {
		_, found[id], _ = strings.Cut(text, "/")
	}
	return found
}

// keyID is what all hashes of a Deployment say about the key they were made with.
func (f *fixture) keyID(d *appsv1.Deployment) string {
	f.Helper()
	made := map[string]bool{}
	for _, hash := range f.hashes(d) {
		made[contentkey.MadeWith(hash)] = true
	}
	if len(made) != 1 {
		f.Fatalf("not of one key: %v", f.hashes(d))
	}
	return slices.Collect(maps.Keys(made))[0]
}

// withoutKey is a hash as v0.1.0 made it of the content of a use.
func withoutKey(content map[string]string) string {
	text := ""
	for _, key := range slices.Sorted(maps.Keys(content)) {
		text += fmt.Sprintf("%d:%s=%d:%s", len(key), key, len(content[key]), content[key])
	}
	return first10(text)
}

// withoutKeyInAll is the hash of all uses as v0.1.0 put it on pods.
func withoutKeyInAll(hashes map[string]string) string {
	text := ""
	for _, id := range slices.Sorted(maps.Keys(hashes)) {
		text += id + "=" + hashes[id] + "\n"
	}
	return first10(text)
}

func first10(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:10])
}

// leftWithoutKey rewrites what the operator, which has to be stopped, has made, as a release
// left it that had no key. contents are those of the uses.
func (f *fixture) leftWithoutKey(app *slipwayv1alpha1.WebApp, contents map[string]map[string]string) *appsv1.Deployment {
	f.Helper()
	deployment := f.deployment()
	versions := deployment.Annotations[desired.AnnotationConfigVersions]
	plain := map[string]string{}
	for id, hash := range f.hashes(deployment) {
		plain[id] = withoutKey(contents[id])
		versions = strings.ReplaceAll(versions, hash, plain[id])
	}
	revision := desired.RevisionOf(app.Spec, withoutKeyInAll(plain))
	template := desired.NewTemplate(app, revision)
	revision, err := revision.Applied(template)
	if err != nil {
		f.Fatal(err)
	}
	name, err := revision.Name(app)
	if err != nil {
		f.Fatal(err)
	}
	data, err := json.Marshal(revision)
	if err != nil {
		f.Fatal(err)
	}
	for _, stored := range f.revisions() {
		f.delete(&stored)
	}
	f.apply(desired.ControllerRevision(app, name, data, 1))
	f.apply(desired.Deployment(desired.Inputs{App: app, Template: template, Revision: revision, Replicas: ptr[int32](1), ConfigVersions: versions}))
	environment.Eventually(f, func() error { return f.cluster.RollOut(f.Context(), f.namespace, "shop") })
	return f.deployment()
}

// ofConfig are the contents of withConfig.
func ofConfig(password string) map[string]map[string]string {
	return map[string]map[string]string{"Secret/db#PASSWORD": {"PASSWORD": password}, "ConfigMap/files": {"shop.conf": "a"}}
}

// stays waits until nothing happens any more and reports whether the Deployment is asked for
// the same pods.
func (f *fixture) stays(before *appsv1.Deployment, when string) *appsv1.Deployment {
	f.Helper()
	f.wait(func(app *slipwayv1alpha1.WebApp) error {
		return has(app, slipwayv1alpha1.ConditionReady, metav1.ConditionTrue, "")
	})
	after := f.settle()
	if after.Generation != before.Generation {
		f.Errorf("%s: the Deployment was changed: %v", when, equal(before.Spec, after.Spec))
	}
	return after
}

// changes waits until the Deployment is asked for pods with another content, and rolls them out.
func (f *fixture) changes(before *appsv1.Deployment) *appsv1.Deployment {
	f.Helper()
	f.deployed(func(d *appsv1.Deployment) error {
		if configHash(d) == configHash(before) {
			return errors.New("the pod template has not changed")
		}
		return nil
	})
	f.rollOut()
	return f.settle()
}

// relabel gives the Secret another version with the same content.
func (f *fixture) relabel(value string) {
	f.Helper()
	update(f, f.secret("db", nil), func(s *corev1.Secret) { s.Labels = map[string]string{"version": value} })
}

func (f *fixture) setPassword(value string) {
	f.Helper()
	update(f, f.secret("db", nil), func(s *corev1.Secret) { s.Data["PASSWORD"] = []byte(value) })
}

func TestAHashWithoutAKeyStaysUntilContentChanges(t *testing.T) {
	f := newFixture(t)
	own := env.Namespace(t)
	started := env.StartOperator(t, nil, f.namespace)
	app := f.withConfig()
	f.settle()
	started.Stop(t)
	before := f.leftWithoutKey(app, ofConfig("one"))

	started, gate := f.keyed(own)
	f.stays(before, "after an upgrade")
	for _, w := range gate.Writes() {
		if w.Resource == "deployments" || w.Resource == "secrets" {
			t.Errorf("written: %s %s", w, w.Body)
		}
	}
	f.relabel("1")
	after := f.stays(before, "the same content at another version")
	if f.keyID(after) != "" {
		t.Errorf("recorded anew: %v", f.hashes(after))
	}
	// What somebody has taken away is what it was.
	update(f, after.DeepCopy(), func(d *appsv1.Deployment) { delete(d.Annotations, desired.AnnotationConfigVersions) })
	f.deployed(func(d *appsv1.Deployment) error {
		if d.Annotations[desired.AnnotationConfigVersions] == "" {
			return errors.New("not restored")
		}
		return nil
	})
	f.rollOut() // a change of annotations counts as a generation
	restored := f.settle()
	if err := equal(before.Spec, restored.Spec); err != nil {
		t.Errorf("the record was deleted: %v", err)
	}

	f.setPassword("two")
	after = f.changes(before)
	if f.keyID(after) == "" {
		t.Errorf("changed content is recorded without a key: %v", f.hashes(after))
	}
	if err := equal(withoutKeyInAll(f.hashes(after)), configHash(after)); err != nil {
		t.Errorf("an earlier release would restart the pods: %v", err)
	}
	started.Stop(t)
	f.restsWithoutAsking(own, after)
}

// restsWithoutAsking starts another operator: nothing is written, nothing is read live.
func (f *fixture) restsWithoutAsking(own string, before *appsv1.Deployment) {
	f.Helper()
	counter := &requests.Counter{}
	started, gate := f.keyed(own, counter.Watch)
	f.stays(before, "after a restart")
	counts := counter.Counts()
	if reads := counts.In(f.namespace).Sum(requests.Reads) + counts.In(own).Sum(requests.Reads); reads > 0 || len(gate.Writes()) > 0 {
		f.Errorf("a restarted operator reads %d objects and writes %d: %s", reads, len(gate.Writes()), counts)
	}
	started.Stop(f)
}

// The pods that a release without a key has left must go on running: a change fails, is rolled
// back, and then the user takes it back.
func TestARollbackToAHashWithoutAKeyStays(t *testing.T) {
	f := newFixture(t)
	own := env.Namespace(t)
	started := env.StartOperator(t, nil, f.namespace)
	app := f.withConfig()
	f.settle()
	started.Stop(t)
	before := f.leftWithoutKey(app, ofConfig("one"))
	f.keyed(own)
	f.stays(before, "after an upgrade")

	f.setPassword("wrong")
	f.deployed(func(d *appsv1.Deployment) error {
		if configHash(d) == configHash(before) {
			return errors.New("the pod template has not changed")
		}
		return nil
	})
	f.stick(waitingContainer("InvalidImageName", ""))
	f.deployed(func(d *appsv1.Deployment) error { return equal(before.Spec.Template, d.Spec.Template) })
	environment.Eventually(t, func() error { return f.cluster.RollOut(t.Context(), f.namespace, "shop") })
	f.waitFor(slipwayv1alpha1.ConditionRolledBack, metav1.ConditionTrue, "")
	f.settle()
	f.setPassword("one")
	f.rollOut() // the record changes, and with it the generation
	if err := equal(before.Spec, f.settle().Spec); err != nil {
		t.Errorf("the pods were restarted: %v", err)
	}
}

func TestALostKeyRestartsNothingUntilASecretIsWritten(t *testing.T) {
	for name, restored := range map[string]bool{"and restored": true, "for good": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			own := env.Namespace(t)
			started, _ := f.keyed(own)
			f.withConfig()
			before := f.settle()
			key, err := f.theKey(own)
			if err != nil {
				t.Fatal(err)
			}
			started.Stop(t)
			f.delete(key)
			if restored {
				key.ResourceVersion, key.UID = "", ""
				f.create(key)
			}
			started, _ = f.keyed(own)
			f.stays(before, "the key was lost")
			f.relabel("1")
			if restored {
				f.stays(before, "the key was restored")
				return
			}
			after := f.changes(before)
			if f.keyID(after) == f.keyID(before) || f.keyID(after) == "" {
				t.Errorf("hashes %v and then %v", f.hashes(before), f.hashes(after))
			}
			started.Stop(t)
			f.restsWithoutAsking(own, after)
		})
	}
}

// Two operators that act at the same time, as when leadership is disputed, have one key.
func TestTwoOperatorsAgreeOnAKey(t *testing.T) {
	own := env.Namespace(t)
	var hashes []map[string]string
	var ids []string
	fixtures := []*fixture{newFixture(t), newFixture(t)}
	for _, f := range fixtures {
		f.keyed(own)
	}
	for _, f := range fixtures {
		f.create(f.secret("db", map[string]string{"PASSWORD": "one"}))
		f.create(f.configMap(map[string]string{"shop.conf": "a"}))
		f.create(f.app(usesPassword))
	}
	for _, f := range fixtures {
		deployment := f.deployment()
		ids, hashes = append(ids, f.keyID(deployment)), append(hashes, f.hashes(deployment))
	}
	if ids[0] != ids[1] || ids[0] == "" {
		t.Errorf("keys %v", ids)
	}
	for id, hash := range hashes[0] {
		if hash == hashes[1][id] {
			t.Errorf("the same content of %s looks the same in two namespaces: %s", id, hash)
		}
	}
}
