package main

import (
	"testing"

	"github.com/slipway-dev/slipway/internal/testing/roots"
)

// The image holds the program and no CA roots. Without roots no public S3 could be reached.
func TestTheProgramBringsRootsAlong(t *testing.T) { roots.Brought(t) }
