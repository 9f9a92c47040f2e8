package main

import (
	"os"
	"testing"

	"github.com/slipway-dev/slipway/internal/testing/roots"
)

func TestMain(m *testing.M) {
	roots.TellIfAsked()
	os.Exit(m.Run())
}

// The image holds the program and no CA roots. Without roots no keys could be fetched from a public issuer of tokens.
func TestTheProgramBringsRootsAlong(t *testing.T) { roots.Brought(t) }
