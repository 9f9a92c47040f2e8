package kit

import (
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipway-dev/slipway/internal/metric"
)

// Kind is what there is to know of a kind outside of its room. internal/operator/kinds.go lists all of them, and whoever works on
// every kind goes through that list: it is the only one.
type Kind struct {
	// Name is what the controller is called: in --controllers, in logs and in metrics.
	Name string
	// Setup registers the controller with the manager.
	Setup func(mgr ctrl.Manager) error
	// Webhook registers the admission webhook. Nil: there is none.
	Webhook func(mgr ctrl.Manager)
	// Budget is what the manager's cache keeps for this controller and for no other one: the kind itself, and what nobody else
	// watches. internal/operator/cache.go has the children and what several kinds watch.
	Budget map[client.Object]cache.ByObject
	// Metrics are those that the controller registers, for the documentation.
	Metrics []metric.Definition
	// People says which rights people have to the objects that the controller is about. None: only who is given rights in the
	// cluster for it has any, as with an object that is in no namespace.
	People []People
}

// People are the rights of people to objects of one kind, in a namespace. Everybody who may view the namespace may read them.
type People struct {
	// Resource is what rights call the kind: its plural.
	Resource string
	// Edit lets those write objects who may edit or administer the namespace.
	Edit bool
	// Status and Scale report whether the kind has the subresource. The status is read only, for everybody. Who may write an object
	// may scale it.
	Status, Scale bool
}
