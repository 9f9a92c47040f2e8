// Package bodybound bounds the size of the bodies of requests. It is pure.
package bodybound

import (
	"fmt"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/gateway/feature"
	"github.com/slipway-dev/slipway/internal/gateway/model"
)

// Setting is that of maxBodyBytes: how many bytes a body may have. 0 means no limit.
var Setting = feature.Setting[int64, int64]{
	Name:     "maxBodyBytes",
	Asked:    func(in *slipwayv1alpha1.GatewayPolicySettings) bool { return in.MaxBodyBytes != nil },
	Read:     read,
	Compile:  compile,
	Text:     func(bound int64, _ feature.Rule) string { return fmt.Sprintf("%020d", bound) },
	Covers:   atMost,
	Inherits: feature.Least,
}

// atMost is for texts of one length. A body that is small enough for mine is small enough for theirs.
func atMost(mine, theirs string) bool { return theirs == "" || mine != "" && mine <= theirs }

func read(in *slipwayv1alpha1.GatewayPolicySettings, _ feature.Source) (int64, *model.Fault) {
	if bound := *in.MaxBodyBytes; bound < 1 {
		return bound, model.Invalid("maxBodyBytes: %d is less than 1", bound)
	}
	return *in.MaxBodyBytes, nil
}

func compile(bound int64, _ feature.Rule) (int64, *model.Fault) {
	if bound < 0 {
		return 0, model.Invalid("maxBodyBytes: %d is negative", bound)
	}
	return bound, nil
}
