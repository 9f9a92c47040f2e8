//go:build !monitortest

package store

// How much the tests do. With the build tag monitortest it is more.
const (
	standardKills  = 5
	queryChanges   = 1800
	queries        = 30
	objectVersions = 120
)
