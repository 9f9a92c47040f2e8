//go:build monitortest

package server

import "testing"

func TestNobodyOfManySeesWhatTheyMayNotList(t *testing.T) { tryRandomRights(t, 2, 60) }
