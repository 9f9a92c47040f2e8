//go:build apitest && monitortest

package crdcheck

import (
	"testing"

	"github.com/slipway-dev/slipway/internal/testing/environment"
)

var env *environment.Environment

func TestMain(m *testing.M) { environment.Main(m, &env) }
