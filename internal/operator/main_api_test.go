//go:build apitest

package operator_test

import (
	"testing"

	"github.com/slipway-dev/slipway/internal/testing/environment"
)

// env is the API server of this package's tests.
var env *environment.Environment

func TestMain(m *testing.M) { environment.Main(m, &env) }
