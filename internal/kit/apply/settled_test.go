package apply

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
)

func service(uid, version string) Child {
	return Child{
		Desired: corev1ac.Service("shop", "default"),
		Current: &corev1.Service{ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid), ResourceVersion: version}},
	}
}

func TestSettled(t *testing.T) {
	var s settled
	s.add(service("a", "1"), []byte(`{"port":80}`))
	cases := map[string]struct {
		child   Child
		desired string
		// settled: as desired at this version; same: the same was desired before.
		settled, same bool
	}{
		"the same of the same version": {service("a", "1"), `{"port":80}`, true, true},
		"something else":               {service("a", "1"), `{"port":81}`, false, false},
		"the same of another version":  {service("a", "2"), `{"port":80}`, false, true},
		"another object of that name":  {service("b", "1"), `{"port":80}`, false, false},
		"an object of another kind": {
			Child{Desired: corev1ac.Secret("shop", "default"), Current: service("a", "1").Current}, `{"port":80}`, false, false,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			same, _ := s.hadDesired(c.child, []byte(c.desired))
			if has := s.has(c.child, []byte(c.desired)); has != c.settled || same != c.same {
				t.Errorf("settled %v, desired before %v; want %v, %v", has, same, c.settled, c.same)
			}
		})
	}
	s.add(service("a", "2"), []byte(`{"port":80}`))
	if s.has(service("a", "1"), []byte(`{"port":80}`)) {
		t.Error("an older version is remembered beside the newer one")
	}
}

func TestAChildThatWasSeenIsKnown(t *testing.T) {
	var s settled
	child := service("a", "1")
	if s.knows(child) {
		t.Error("it is known before it was seen")
	}
	s.see(child)
	if !s.knows(child) || s.has(child, []byte(`{}`)) {
		t.Errorf("known: %v, as desired: %v; want true and false", s.knows(child), s.has(child, []byte(`{}`)))
	}
	if _, remembered := s.hadDesired(child, []byte(`{}`)); remembered {
		t.Error("what was desired of a child that was only seen is remembered")
	}
	s.add(child, []byte(`{}`))
	s.see(child)
	if !s.has(child, []byte(`{}`)) {
		t.Error("seeing it again forgets what was desired")
	}
}
