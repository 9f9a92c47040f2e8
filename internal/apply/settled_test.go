package apply

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestSettled(t *testing.T) {
	object := func(uid, version string) *corev1.Service {
		return &corev1.Service{ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid), ResourceVersion: version}}
	}
	var s settled
	s.add(object("a", "1"), []byte(`{"port":80}`))
	cases := map[string]struct {
		object *corev1.Service
		stated string
		want   bool
	}{
		"the same statement about the same version": {object("a", "1"), `{"port":80}`, true},
		"another statement":                         {object("a", "1"), `{"port":81}`, false},
		"another version":                           {object("a", "2"), `{"port":80}`, false},
		"another object":                            {object("b", "1"), `{"port":80}`, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := s.has(c.object, []byte(c.stated)); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
	s.add(object("a", "2"), []byte(`{"port":80}`))
	if s.has(object("a", "1"), []byte(`{"port":80}`)) {
		t.Error("an older version is remembered beside the newer one")
	}
}

func TestADeletedObjectIsRememberedByItsUID(t *testing.T) {
	deleted := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "shop", UID: "a"}}
	successor := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "shop", UID: "b"}}
	var s settled
	s.addDeleted(deleted)
	if !s.isDeleted(deleted) || s.isDeleted(successor) {
		t.Errorf("deleted %v, its successor %v; want true and false", s.isDeleted(deleted), s.isDeleted(successor))
	}
	if s.has(deleted, []byte(`{}`)) {
		t.Error("a deleted object counts as stated")
	}
}
