package command

import (
	"testing"
)

func TestParseTarget(t *testing.T) {
	for argument, want := range map[string]string{
		"shop": "shop", "webapp/shop": "shop", "webapps/shop": "shop", "app/shop": "shop", "WebApp/shop": "shop", "webapp.slipway.dev/shop": "shop",
	} {
		if got, err := ParseTarget(argument); err != nil || got != want {
			t.Errorf("%q: got %q, %v; want %q", argument, got, err, want)
		}
	}
	for _, argument := range []string{"deployment/shop", "webapp/", "webapp/shop/x", "/shop"} {
		if got, err := ParseTarget(argument); err == nil {
			t.Errorf("%q: got %q, want an error", argument, got)
		}
	}
}
