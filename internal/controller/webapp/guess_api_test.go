//go:build apitest

package webapp_test

import (
	"crypto/hmac"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/controller/webapp/desired"
	"github.com/slipway-dev/slipway/internal/kit/contentkey"
	"github.com/slipway-dev/slipway/internal/testing/fault"
)

// The uses of a Secret whose only key PIN has four digits.
const (
	wholePIN = "Secret/door"
	onlyPIN  = "Secret/door#PIN"
)

func usesPIN(a *slipwayv1alpha1.WebApp) {
	door := &slipwayv1alpha1.LocalReference{Name: "door"}
	a.Spec.EnvFrom = []slipwayv1alpha1.EnvFromSource{{SecretRef: door, Keys: []string{"PIN"}}}
	a.Spec.Files = []slipwayv1alpha1.FileSource{{SecretRef: door, MountPath: "/etc/door"}}
}

// seen is all that a reader of everything but Secrets has to look at.
type seen struct {
	f *fixture
	// windows are all texts of a candidate's length in it.
	windows map[string]bool
}

// shown of a candidate are the bytes that are looked for, in hexadecimal digits: more could
// be cut off by whoever wrote it. Names have fewer.
const (
	shown     = 16
	shownName = 10
)

func (s *seen) add(text string) {
	for _, length := range []int{shown, shownName} {
		for at := 0; at+length <= len(text); at++ {
			s.windows[text[at:at+length]] = true
		}
	}
}

func (s *seen) addObject(object any) {
	s.f.Helper()
	raw, err := json.Marshal(object)
	if err != nil {
		s.f.Fatal(err)
	}
	s.add(string(raw))
}

// look adds what there is now: objects, and events.
func (s *seen) look() {
	s.f.Helper()
	for _, list := range []client.ObjectList{
		&slipwayv1alpha1.WebAppList{}, &appsv1.DeploymentList{}, &appsv1.ReplicaSetList{}, &appsv1.ControllerRevisionList{},
		&corev1.PodList{}, &corev1.ServiceList{}, &eventsv1.EventList{},
	} {
		if err := env.Client.List(s.f.Context(), list, client.InNamespace(s.f.namespace)); err != nil {
			s.f.Fatal(err)
		}
		s.addObject(list)
	}
}

// holds reports whether a candidate is in what was seen.
func (s *seen) holds(candidate []byte) bool {
	return s.windows[hex.EncodeToString(candidate)[:shown]] || s.windows[base64.StdEncoding.EncodeToString(candidate)[:shown]]
}

// guesses returns the PINs that what was seen bears out: whatever somebody computes who knows
// the programs, the spec and the names of all objects, and has no key.
func (s *seen) guesses(app *slipwayv1alpha1.WebApp) []string {
	s.f.Helper()
	var found []string
	named, macs := s.f.names(app), publicKeys(app)
	for n := range 10000 {
		if pin := fmt.Sprintf("%04d", n); s.bearsOut(named, macs, pin) {
			found = append(found, pin)
		}
	}
	return found
}

// publicKeys are hashes with keys that everybody knows.
func publicKeys(app *slipwayv1alpha1.WebApp) []hash.Hash {
	var macs []hash.Hash
	for _, key := range []string{"", app.Namespace, wholePIN, onlyPIN, string(app.UID), contentkey.Scheme, strings.Repeat("\x00", 32)} {
		macs = append(macs, hmac.New(sha256.New, []byte(key)))
		for _, object := range []string{wholePIN, onlyPIN} {
			macs = append(macs, contentkey.Derive([]byte(key), app.Namespace).New(object))
		}
	}
	return macs
}

func (s *seen) bearsOut(named *names, macs []hash.Hash, pin string) bool {
	content := map[string]string{"PIN": pin}
	plain := withoutKey(content)
	canonical := fmt.Sprintf("3:PIN=4:%s", pin)
	for _, text := range []string{pin, "PIN=" + pin, canonical, onlyPIN + "=" + plain + "\n", `{"PIN":"` + pin + `"}`, base64.StdEncoding.EncodeToString([]byte(pin))} {
		one, old := sha1.Sum([]byte(text)), md5.Sum([]byte(text))
		long := sha256.Sum256([]byte(text))
		for _, sum := range [][]byte{one[:], old[:], long[:]} {
			if s.holds(sum) {
				return true
			}
		}
	}
	for _, mac := range macs {
		mac.Reset()
		mac.Write([]byte(canonical))
		if s.holds(mac.Sum(nil)) {
			return true
		}
	}
	return s.holdsName(named, withoutKeyInAll(map[string]string{wholePIN: plain, onlyPIN: plain}))
}

// holdsName reports whether a hash of all uses, or what is called after it, was seen.
func (s *seen) holdsName(named *names, all string) bool {
	return s.windows[all[:shown]] || s.windows[named.digest(named.template, all)] || s.windows[named.digest(named.intent, all)]
}

// names computes what the operator calls the template and the intent of a spec with a hash of
// its configuration, faster than the operator does.
type names struct{ template, intent string }

const hashHere = "HASH-HERE"

func (f *fixture) names(app *slipwayv1alpha1.WebApp) *names {
	f.Helper()
	canonical := func(object any) string {
		raw, err := json.Marshal(object)
		if err != nil {
			f.Fatal(err)
		}
		var generic any
		if err := json.Unmarshal(raw, &generic); err != nil {
			f.Fatal(err)
		}
		if raw, err = json.Marshal(generic); err != nil {
			f.Fatal(err)
		}
		return string(raw)
	}
	revision := desired.RevisionOf(app.Spec, hashHere)
	named := &names{template: canonical(desired.NewTemplate(app, revision)), intent: canonical(revision)}
	name, err := desired.RevisionOf(app.Spec, "c0ffee").Name(app)
	if want := app.Name + "-" + named.digest(named.template, "c0ffee"); err != nil || name != want {
		f.Fatalf("a revision is called %q, not %q (%v)", name, want, err)
	}
	intent, err := desired.Intent(app.Spec, "c0ffee")
	if want := named.digest(named.intent, "c0ffee"); err != nil || intent != want {
		f.Fatalf("an intent is called %q, not %q (%v)", intent, want, err)
	}
	return named
}

func (*names) digest(canonical, all string) string {
	sum := sha256.Sum256([]byte(strings.ReplaceAll(canonical, hashHere, all)))
	return hex.EncodeToString(sum[:])[:shownName]
}

// Who reads every object but Secrets, in whatever state it was at any time, cannot tell a
// guess of a value that is right from one that is wrong. Of what a release without a key
// wrote he can.
func TestWhoReadsAllButSecretsCannotTestAGuess(t *testing.T) {
	const first, broken, last = "4711", "8302", "0042"
	f := newFixture(t)
	own := env.Namespace(t)
	started, gate := f.keyed(own)
	all := &seen{f: f, windows: map[string]bool{}}
	set := func(pin string) {
		t.Helper()
		update(f, f.secret("door", nil), func(s *corev1.Secret) { s.Data["PIN"] = []byte(pin) })
	}
	another := func(before *appsv1.Deployment) {
		t.Helper()
		f.deployed(func(d *appsv1.Deployment) error {
			if configHash(d) == configHash(before) {
				return errors.New("the pod template has not changed")
			}
			return nil
		})
	}
	app := f.app(usesPIN)
	f.create(app)
	f.waitFor(slipwayv1alpha1.ConditionReady, metav1.ConditionFalse, slipwayv1alpha1.ReasonSecretNotFound)
	all.look()
	f.create(f.secret("door", map[string]string{"PIN": first}))
	good := f.deployment()
	f.rollOut()
	all.look()
	set(broken)
	another(good)
	all.look()
	f.stick(waitingContainer("InvalidImageName", ""))
	f.waitFor(slipwayv1alpha1.ConditionRolledBack, metav1.ConditionTrue, "")
	f.deployed(func(d *appsv1.Deployment) error { return equal(configHash(good), configHash(d)) })
	all.look()
	update(f, good.DeepCopy(), func(d *appsv1.Deployment) { d.Annotations[desired.AnnotationConfigVersions] = "{}" })
	set(last)
	another(good)
	f.rollOut()
	f.settle()
	all.look()
	started.Stop(t)
	f.addWritten(all, gate, own)
	if found := all.guesses(app); len(found) > 0 {
		t.Errorf("of %d texts, these PINs are borne out: %v", len(all.windows), found)
	}

	earlier := f.leftWithoutKey(app, map[string]map[string]string{wholePIN: {"PIN": last}, onlyPIN: {"PIN": last}})
	for _, part := range []func(*appsv1.Deployment) string{configHash, func(d *appsv1.Deployment) string { return d.Annotations[desired.AnnotationConfigVersions] }} {
		one := &seen{f: f, windows: map[string]bool{}}
		one.add(part(earlier))
		if found := one.guesses(app); len(found) != 1 || found[0] != last {
			t.Errorf("the attack finds %v in %q, want %s", found, part(earlier), last)
		}
	}
}

// addWritten adds all that the operator sent, but the key.
func (f *fixture) addWritten(all *seen, gate *fault.Gate, own string) {
	f.Helper()
	keys := 0
	for _, w := range gate.Writes() {
		if w.Resource == "secrets" && w.Namespace == own && w.Verb == "create" {
			keys++
			continue
		}
		if w.Resource == "secrets" {
			f.Errorf("written: %s", w)
		}
		all.add(string(w.Body))
	}
	if keys != 1 || len(gate.Writes()) < 10 {
		f.Errorf("%d keys among %d writes", keys, len(gate.Writes()))
	}
}
