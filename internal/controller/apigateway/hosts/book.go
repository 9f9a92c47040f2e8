package hosts

import (
	"context"
	"errors"
	"fmt"
	"sync"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipway-dev/slipway/internal/kit/outcome"
)

// IndexHolder finds records by an APIGateway that is a holder, as namespace/name.
const IndexHolder = "slipway.dev/host-holder"

// HolderIndex are the values of that index.
func HolderIndex(object client.Object) []string {
	lease, ok := object.(*coordinationv1.Lease)
	if !ok {
		return nil
	}
	var keys []string
	for _, h := range Holders(lease) {
		keys = append(keys, h.Key().String())
	}
	return keys
}

// Book is all records of an operator.
type Book struct {
	// Client reads from the cache, and writes.
	Client client.Client
	// Namespace is the operator's own.
	Namespace string

	beginning sync.Mutex
	begun     bool
}

// Begin records present owners, once for an installation. present lists them in the order of age. An operator that ends
// meanwhile leaves records that the next one keeps.
func (b *Book) Begin(ctx context.Context, present func(context.Context) ([]Present, error)) error {
	b.beginning.Lock()
	defer b.beginning.Unlock()
	if b.begun {
		return nil
	}
	marker := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace, Name: beginningName, Labels: labels(ofBeginning)}}
	err := b.Client.Get(ctx, client.ObjectKeyFromObject(marker), &coordinationv1.Lease{})
	switch {
	case err == nil:
		b.begun = true
		return nil
	case !apierrors.IsNotFound(err):
		return outcome.Classify("the records of hosts", fmt.Errorf("read whether they have begun: %w", err))
	}
	list, err := present(ctx)
	if err != nil {
		return err
	}
	for _, first := range firstHolders(list) {
		// A reconcile has an end: with many hosts, the next one goes on where this one ended.
		record, err := b.read(ctx, first.claim)
		if err == nil && record == nil {
			err = b.create(ctx, newRecord(b.Namespace, first.claim, first.holders))
		}
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return classify(first.claim.Host, err)
		}
	}
	if err := b.create(ctx, marker); err != nil && !apierrors.IsAlreadyExists(err) {
		return outcome.Classify("the records of hosts", err)
	}
	b.begun = true
	return nil
}

// Mine returns the records of which an APIGateway is a holder, by name. They are shared with the cache.
func (b *Book) Mine(ctx context.Context, gateway types.NamespacedName) (map[string]*coordinationv1.Lease, error) {
	list := &coordinationv1.LeaseList{}
	err := b.Client.List(ctx, list, client.InNamespace(b.Namespace), client.MatchingFields{IndexHolder: gateway.String()}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("list the hosts of APIGateway %q: %w", gateway, err)
	}
	mine := make(map[string]*coordinationv1.Lease, len(list.Items))
	for i := range list.Items {
		mine[list.Items[i].Name] = &list.Items[i]
	}
	return mine, nil
}

// Take gives an APIGateway a host, unless it belongs to another one: then it returns that one. mine are the records that
// Mine has returned.
func (b *Book) Take(ctx context.Context, gateway types.NamespacedName, claim Claim, mine map[string]*coordinationv1.Lease) (*types.NamespacedName, error) {
	if record := mine[claim.recordName()]; record != nil && holds(Holders(record), claim.Part, gateway) {
		return nil, nil
	}
	record, err := b.read(ctx, claim)
	if err != nil {
		return nil, err
	}
	if record == nil {
		return nil, classify(claim.Host, b.create(ctx, newRecord(b.Namespace, claim, with(nil, claim.Part, gateway))))
	}
	holders := Holders(record)
	if rival := rivalOf(holders, claim.Part, gateway); rival != nil {
		key := rival.Key()
		return &key, nil
	}
	if holds(holders, claim.Part, gateway) {
		return nil, nil
	}
	if len(holders) >= maxHolders {
		key := holders[0].Key()
		return &key, nil
	}
	next := newRecord(b.Namespace, claim, with(holders, claim.Part, gateway))
	next.UID, next.ResourceVersion = record.UID, record.ResourceVersion
	if err := b.Client.Update(ctx, next); err != nil {
		return nil, classify(claim.Host, err)
	}
	mine[next.Name] = next // Release may change it again
	return nil, nil
}

// Rival returns another APIGateway that a host belongs to, or nil. It writes nothing.
func (b *Book) Rival(ctx context.Context, gateway types.NamespacedName, claim Claim) (*types.NamespacedName, error) {
	record, err := b.read(ctx, claim)
	if err != nil || record == nil {
		return nil, err
	}
	if rival := rivalOf(Holders(record), claim.Part, gateway); rival != nil {
		key := rival.Key()
		return &key, nil
	}
	return nil, nil
}

// Release gives up what an APIGateway holds and does not ask for any more. It must not be exposed there any more.
func (b *Book) Release(ctx context.Context, gateway types.NamespacedName, asked []Claim, mine map[string]*coordinationv1.Lease) error {
	wanted := make(map[Claim]bool, len(asked))
	for _, claim := range asked {
		wanted[claim] = true
	}
	var errs []error
	for _, record := range mine {
		holders := Holders(record)
		left := without(holders, gateway, func(part string) bool { return wanted[claimOf(record, part)] })
		if len(left) == len(holders) {
			continue
		}
		errs = append(errs, classify(record.Annotations[annotationHost], b.replace(ctx, record, left)))
	}
	return errors.Join(errs...)
}

// replace writes the holders that are left, of the version that was read. A record without any goes.
func (b *Book) replace(ctx context.Context, record *coordinationv1.Lease, left []Holder) error {
	if len(left) == 0 {
		err := b.Client.Delete(ctx, record.DeepCopy(), client.Preconditions{UID: &record.UID, ResourceVersion: &record.ResourceVersion})
		return client.IgnoreNotFound(err)
	}
	next := newRecord(b.Namespace, claimOf(record, ""), left)
	next.UID, next.ResourceVersion = record.UID, record.ResourceVersion
	return b.Client.Update(ctx, next)
}

func (b *Book) read(ctx context.Context, claim Claim) (*coordinationv1.Lease, error) {
	record := &coordinationv1.Lease{}
	err := b.Client.Get(ctx, types.NamespacedName{Namespace: b.Namespace, Name: claim.recordName()}, record)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read whose host %q is: %w", claim.Host, err)
	default:
		return record, nil
	}
}

func (b *Book) create(ctx context.Context, record *coordinationv1.Lease) error {
	return b.Client.Create(ctx, record)
}

// classify gives an error of a write its policy. A version that is not the last one is a conflict: the cache is about to show
// who was faster.
func classify(host string, err error) error {
	if err == nil {
		return nil
	}
	return outcome.Classify(fmt.Sprintf("the record of host %q", host), err)
}
