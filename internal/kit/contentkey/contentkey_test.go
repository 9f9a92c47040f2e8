package contentkey

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipway-dev/slipway/internal/kit/outcome"
)

var secrets = schema.GroupResource{Resource: "secrets"}

// store is an API server with at most one Secret.
type store struct {
	mu     sync.Mutex
	stored *corev1.Secret
	// onCreate answers in place of the API server when it returns an error, after the
	// Secret was stored if committed.
	onCreate  func() (committed bool, err error)
	onGet     error
	gets      int
	creations int
}

func (s *store) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gets++
	if s.onGet != nil {
		return s.onGet
	}
	if s.stored == nil || client.ObjectKeyFromObject(s.stored) != key {
		return apierrors.NewNotFound(secrets, key.Name)
	}
	s.stored.DeepCopyInto(object.(*corev1.Secret))
	return nil
}

func (s *store) Create(_ context.Context, object client.Object, _ ...client.CreateOption) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.creations++
	if s.stored != nil {
		return apierrors.NewAlreadyExists(secrets, object.GetName())
	}
	if s.onCreate == nil {
		s.stored = object.(*corev1.Secret).DeepCopy()
		return nil
	}
	committed, err := s.onCreate()
	s.onCreate = nil
	if committed {
		s.stored = object.(*corev1.Secret).DeepCopy()
	}
	return err
}

// text is what is written of a value.
func text(k Key, object, value string) string {
	h := k.New(object)
	_, _ = io.WriteString(h, value)
	return k.Text(h)
}

func TestEqualContentLooksEqualOnlyInOnePlaceOfOneInstallation(t *testing.T) {
	one, two := bytes.Repeat([]byte{1}, keyBytes), bytes.Repeat([]byte{2}, keyBytes)
	texts := map[string]string{
		"a value":               text(Derive(one, "team"), "Secret/db", "4711"),
		"another value":         text(Derive(one, "team"), "Secret/db", "4712"),
		"in another namespace":  text(Derive(one, "other"), "Secret/db", "4711"),
		"in another object":     text(Derive(one, "team"), "Secret/cache", "4711"),
		"in another kind":       text(Derive(one, "team"), "ConfigMap/db", "4711"),
		"another installation":  text(Derive(two, "team"), "Secret/db", "4711"),
		"the border has moved":  text(Derive(one, "teamS"), "ecret/db", "4711"),
		"without any key":       text(Key{}, "Secret/db", "4711"),
		"with a key of nothing": text(Derive(nil, "team"), "Secret/db", "4711"),
	}
	if distinct := slices.Compact(slices.Sorted(maps.Values(texts))); len(distinct) != len(texts) {
		t.Errorf("two of these are the same: %v", texts)
	}
	if again := text(Derive(one, "team"), "Secret/db", "4711"); again != texts["a value"] {
		t.Errorf("the same is %s and then %s", texts["a value"], again)
	}
}

func TestAHashSaysWhichKeyItWasMadeWith(t *testing.T) {
	one, two := bytes.Repeat([]byte{1}, keyBytes), bytes.Repeat([]byte{2}, keyBytes)
	here, there := text(Derive(one, "team"), "Secret/db", "4711"), text(Derive(one, "other"), "Secret/cache", "4712")
	other := text(Derive(two, "team"), "Secret/db", "4711")
	if MadeWith(here) != MadeWith(there) || MadeWith(here) == MadeWith(other) || !strings.HasPrefix(MadeWith(here), "hmac-") {
		t.Errorf("%s and %s are of one key, %s of another", here, there, other)
	}
	for _, plain := range []string{"", "4586ab864a0f7960635b", "hmac"} {
		if made := MadeWith(plain); made != "" {
			t.Errorf("%q was made with %q", plain, made)
		}
	}
}

func TestTheKeyIsMadeOnceAndReadOnce(t *testing.T) {
	api := &store{}
	installation := NewInstallation(api, "slipway-system")
	first, err := installation.For(t.Context(), "team")
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		again, err := installation.For(t.Context(), "team")
		if err != nil || text(again, "a", "b") != text(first, "a", "b") {
			t.Errorf("another key (%v)", err)
		}
	}
	if api.gets != 1 || api.creations != 1 {
		t.Errorf("%d reads and %d creations, want 1 and 1", api.gets, api.creations)
	}
	secret := api.stored
	if secret.Namespace != "slipway-system" || secret.Name != SecretName || len(secret.Data) != 1 || len(secret.Data[DataKey]) != keyBytes || secret.Immutable == nil || !*secret.Immutable {
		t.Errorf("stored is %s/%s with %d keys, immutable: %v", secret.Namespace, secret.Name, len(secret.Data), secret.Immutable)
	}
	restarted, err := NewInstallation(api, "slipway-system").For(t.Context(), "team")
	if err != nil || text(restarted, "a", "b") != text(first, "a", "b") || api.creations != 1 {
		t.Errorf("another operator has another key, or made one (%v, %d creations)", err, api.creations)
	}
}

func TestTwoKeysOfTwoInstallationsDiffer(t *testing.T) {
	one, err := NewInstallation(&store{}, "slipway-system").For(t.Context(), "team")
	two, err2 := NewInstallation(&store{}, "slipway-system").For(t.Context(), "team")
	if err != nil || err2 != nil || text(one, "a", "b") == text(two, "a", "b") {
		t.Errorf("the same key twice (%v, %v)", err, err2)
	}
}

// Whatever comes between looking and making, the key that is stored is the one in use.
func TestTheStoredKeyCounts(t *testing.T) {
	lost := apierrors.NewTimeoutError("no answer", 0)
	failures := map[string]func(*store) func() (bool, error){
		"the answer is lost":  func(*store) func() (bool, error) { return func() (bool, error) { return true, lost } },
		"the request is lost": func(*store) func() (bool, error) { return func() (bool, error) { return false, lost } },
		"another operator is first": func(s *store) func() (bool, error) {
			return func() (bool, error) {
				s.stored = &corev1.Secret{Data: map[string][]byte{DataKey: bytes.Repeat([]byte{7}, keyBytes)}}
				s.stored.Namespace, s.stored.Name = "slipway-system", SecretName
				return false, apierrors.NewAlreadyExists(secrets, SecretName)
			}
		},
	}
	for name, failure := range failures {
		t.Run(name, func(t *testing.T) {
			api := &store{}
			api.onCreate = failure(api)
			installation := NewInstallation(api, "slipway-system")
			key, err := installation.For(t.Context(), "team")
			if err != nil {
				if key, err = installation.For(t.Context(), "team"); err != nil {
					t.Fatal(err)
				}
			}
			if text(key, "a", "b") != text(Derive(api.stored.Data[DataKey], "team"), "a", "b") {
				t.Error("the key in use is not the one that is stored")
			}
		})
	}
}

// hanging is an API server that does not answer.
type hanging struct {
	API
	asked chan struct{}
}

func (h hanging) Get(ctx context.Context, _ client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	h.asked <- struct{}{}
	<-ctx.Done()
	return ctx.Err()
}

func TestNobodyWaitsLongerThanHisContext(t *testing.T) {
	api := hanging{asked: make(chan struct{}, 2)}
	installation := NewInstallation(api, "slipway-system")
	var wait sync.WaitGroup
	defer wait.Wait()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	wait.Go(func() { _, _ = installation.For(ctx, "team") })
	<-api.asked
	gaveUp := make(chan error, 1)
	wait.Go(func() {
		ended, end := context.WithCancel(t.Context())
		end()
		_, err := installation.For(ended, "team")
		gaveUp <- err
	})
	select {
	case err := <-gaveUp:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("it ends with %v, want that the context has ended", err)
		}
	case <-time.After(5 * time.Second):
		t.Error("it waits for the request of another reconcile")
	}
}

func TestManyAtATimeMakeOneKey(t *testing.T) {
	api := &store{}
	installation := NewInstallation(api, "slipway-system")
	var wait sync.WaitGroup
	texts := make([]string, 20)
	for i := range texts {
		wait.Go(func() {
			if key, err := installation.For(t.Context(), "team"); err == nil {
				texts[i] = text(key, "a", "b")
			}
		})
	}
	wait.Wait()
	if slices.Sort(texts); texts[0] == "" || len(slices.Compact(texts)) != 1 || api.creations != 1 {
		t.Errorf("%d creations, hashes %v", api.creations, texts)
	}
}

func TestWithoutAKeyItSaysWhy(t *testing.T) {
	forbidden := apierrors.NewForbidden(secrets, SecretName, errors.New(`User "x" cannot create resource "secrets"`))
	wrong := &corev1.Secret{Data: map[string][]byte{DataKey: []byte("hunter2")}}
	wrong.Namespace, wrong.Name = "slipway-system", SecretName
	const what = `Secret "slipway-content-key" in namespace "slipway-system", which keys the hashes of configuration,`
	tests := map[string]struct {
		api  *store
		kind outcome.Kind
		want string
	}{
		"it may not be read": {
			&store{onGet: forbidden}, outcome.Transient,
			what + ` is forbidden: secrets "slipway-content-key" is forbidden: User "x" cannot create resource "secrets"`,
		},
		"it may not be made": {
			&store{onCreate: func() (bool, error) { return false, forbidden }}, outcome.Transient,
			what + ` is forbidden: secrets "slipway-content-key" is forbidden: User "x" cannot create resource "secrets"`,
		},
		"there is no such namespace": {
			&store{onCreate: func() (bool, error) {
				return false, apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "slipway-system")
			}}, outcome.Transient,
			what + " cannot be made: the namespace does not exist",
		},
		"it holds something else": {
			&store{stored: wrong}, outcome.Blocked,
			what + ` has no 32 bytes under "key": restore it, or delete it to have another one made`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := NewInstallation(tc.api, "slipway-system").For(t.Context(), "team")
			own := (*outcome.Error)(nil)
			if !errors.As(err, &own) || own.Kind != tc.kind || own.Message != tc.want {
				t.Errorf("got  %v\nwant %s", own, tc.want)
			}
			if tc.api.stored == wrong && !bytes.Equal(wrong.Data[DataKey], []byte("hunter2")) {
				t.Error("what was there was overwritten")
			}
		})
	}
}

// A fixed answer, computed once by another program from the same definition: a release that
// computes another one would take every content for changed.
func TestAHashIsTheSameInEveryRelease(t *testing.T) {
	got := text(Derive(bytes.Repeat([]byte{1}, keyBytes), "team"), "Secret/db", "4711")
	if want := "hmac-cbc5b608-f9ed46b2674bcde073f4"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
