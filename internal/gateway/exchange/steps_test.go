package exchange

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Each end step gives something back: a place, or room in memory. One that fails must not keep what the others hold.
func TestAnEndStepThatPanicsKeepsNoOtherFromRunning(t *testing.T) {
	var ran []string
	note := func(name string, panics bool) func(*Exchange, bool) {
		return func(_ *Exchange, returned bool) {
			ran = append(ran, fmt.Sprint(name, " ", returned))
			if panics {
				panic(name)
			}
		}
	}
	func() {
		defer func() {
			if got := recover(); got != "second" {
				t.Errorf("it panics with %v, want what the second has said", got)
			}
		}()
		new(Exchange).Finish([]func(*Exchange, bool){note("first", false), note("second", true), note("third", false)}, true)
	}()
	if diff := cmp.Diff([]string{"first true", "second true", "third true"}, ran); diff != "" {
		t.Errorf("what ran (-want +got):\n%s", diff)
	}
}

// Each setting alone makes a route have steps of its own.
func TestEachStepCounts(t *testing.T) {
	of := reflect.TypeFor[Steps]()
	for i := range of.NumField() {
		if of.Field(i).Type.Kind() != reflect.Slice {
			continue
		}
		one := reflect.New(of)
		field := one.Elem().Field(i)
		field.Set(reflect.MakeSlice(field.Type(), 1, 1))
		want(t, of.Field(i).Name, one.Interface().(*Steps).Count(), 1)
	}
}
