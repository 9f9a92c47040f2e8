package mover

import (
	"testing"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/health"
)

// slipway-backup says what is wrong with a folder or an address. Who reads a status knows objects and fields.
func TestATroubleNamesTheObjectAndTheField(t *testing.T) {
	names := Names{
		Place: Place{Bucket: "copies"}, Destination: "spec.destination", Paths: "spec.include",
		Credentials: Named{"bucket", "spec.credentials"}, Encryption: Named{"key", "spec.encryption"},
	}
	onClaim := names
	onClaim.Place = Place{Claim: "disk"}
	tests := map[string]struct {
		names  Names
		reason string
		want   string
	}{
		"refused credentials":      {names, slipwayv1alpha1.ReasonAccessDenied, `bucket "copies" (spec.destination), with Secret "bucket" (spec.credentials): why`},
		"a volume that is refused": {onClaim, slipwayv1alpha1.ReasonAccessDenied, `PersistentVolumeClaim "disk" (spec.destination): why`},
		"no answer":                {names, slipwayv1alpha1.ReasonUnreachable, `bucket "copies" (spec.destination), with Secret "bucket" (spec.credentials): why`},
		"no bucket":                {names, slipwayv1alpha1.ReasonDestinationNotFound, `bucket "copies" (spec.destination): why`},
		"a wrong password":         {names, slipwayv1alpha1.ReasonWrongPassword, `Secret "key" (spec.encryption): why`},
		"a path that is not there": {names, slipwayv1alpha1.ReasonPathNotFound, `spec.include: why`},
		"something else":           {names, slipwayv1alpha1.ReasonSourceEmpty, "why"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			trouble := &health.Trouble{Reason: tc.reason, Message: "why"}
			if got := tc.names.Name(trouble); got.Message != tc.want || got.Reason != tc.reason || trouble.Message != "why" {
				t.Errorf("got %+v, want %q", got, tc.want)
			}
		})
	}
	if got := names.Name(nil); got != nil {
		t.Errorf("got %+v of nothing", got)
	}
}
