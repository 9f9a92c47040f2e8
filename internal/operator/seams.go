package operator

import (
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipway-dev/slipway/internal/controller/backuprun"
	"github.com/slipway-dev/slipway/internal/kit/contentkey"
	"github.com/slipway-dev/slipway/internal/kit/outcome"
)

// Seams are where a test takes the place of what is around an operator. The program has none of them.
type Seams struct {
	// BackupExec replaces how hooks of Backups are run. Default: by the API server.
	BackupExec backuprun.Execer
	// GatewayAdminPort is where gateway pods are asked what they serve, where the pods are elsewhere. Default: the port of the pods
	// that the operator makes.
	GatewayAdminPort int
	// AllowSecondController lets a second manager register controllers of the same name in one process, as a test that restarts
	// the operator does.
	AllowSecondController bool
	// ContentKeys replaces the key that is in Options.Namespace, so that what is made in different namespaces can be compared.
	ContentKeys contentkey.Keys
	// ClusterRights reports whether the operator has the rights of one for all namespaces though Options.Namespaces names some, in a
	// cluster that others use too.
	ClusterRights bool
	// NewCache replaces the cache, as a test that delays events does. Default: the cluster's, within the cache budget.
	NewCache cache.NewCacheFunc
	// NewClient replaces the client, as a test that plants a bug does. Default: one that reads from the cache and sees its own
	// writes.
	NewClient client.NewClientFunc
	// NewQueue replaces the queue of each controller, as a test does that waits for all of them to be empty. Default:
	// controller-runtime's.
	NewQueue outcome.NewQueue
}
