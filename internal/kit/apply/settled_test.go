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
		child  Child
		stated string
		want   bool
	}{
		"the same statement about the same version": {service("a", "1"), `{"port":80}`, true},
		"another statement":                         {service("a", "1"), `{"port":81}`, false},
		"another version":                           {service("a", "2"), `{"port":80}`, false},
		"another object of that name":               {service("b", "1"), `{"port":80}`, false},
		"an object of another kind":                 {Child{Desired: corev1ac.Secret("shop", "default"), Current: service("a", "1").Current}, `{"port":80}`, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := s.has(c.child, []byte(c.stated)); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
	s.add(service("a", "2"), []byte(`{"port":80}`))
	if s.has(service("a", "1"), []byte(`{"port":80}`)) {
		t.Error("an older version is remembered beside the newer one")
	}
}

func TestADeletedObjectIsRememberedByItsUID(t *testing.T) {
	deleted, successor := service("a", "1"), service("b", "2")
	var s settled
	s.addDeleted(deleted.Current)
	if !s.isDeleted(deleted.Current) || s.isDeleted(successor.Current) {
		t.Errorf("deleted %v, its successor %v; want true and false", s.isDeleted(deleted.Current), s.isDeleted(successor.Current))
	}
	if s.has(deleted, []byte(`{}`)) {
		t.Error("a deleted object counts as stated")
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
		t.Errorf("known: %v, as stated: %v; want true and false", s.knows(child), s.has(child, []byte(`{}`)))
	}
	s.add(child, []byte(`{}`))
	s.see(child)
	if !s.has(child, []byte(`{}`)) {
		t.Error("seeing it again forgets what was stated")
	}
}
