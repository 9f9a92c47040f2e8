package hosts

import (
	"context"
	"errors"
	"fmt"
	"slices"
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

// IndexNamespace finds records by the namespace of a holder.
const IndexNamespace = "slipway.dev/host-namespace"

// NamespaceIndex are the values of that index.
func NamespaceIndex(object client.Object) []string {
	lease, ok := object.(*coordinationv1.Lease)
	if !ok {
		return nil
	}
	var names []string
	for _, h := range Holders(lease) {
		if !slices.Contains(names, h.Namespace) {
			names = append(names, h.Namespace)
		}
	}
	return names
}

// ErrFull is the error of a host that a namespace gets no record for any more.
var ErrFull = fmt.Errorf("the namespace has %d hosts", MaxHosts)

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

// Holdings are the records of an APIGateway, by name. They are shared with the cache.
type Holdings struct {
	records map[string]*coordinationv1.Lease
	// inNamespace is how many its namespace has, once counted.
	inNamespace int
	counted     bool
}

// None reports whether there are none.
func (h *Holdings) None() bool { return len(h.records) == 0 }

// HasFormer reports whether some are of an APIGateway of the same name that there was before.
func (h *Holdings) HasFormer(gateway Gateway) bool {
	for _, record := range h.records {
		if slices.ContainsFunc(Holders(record), func(holder Holder) bool { return holder.isFormer(gateway) }) {
			return true
		}
	}
	return false
}

// Mine returns the records of which an APIGateway is a holder, or one of the same name was before.
func (b *Book) Mine(ctx context.Context, gateway types.NamespacedName) (*Holdings, error) {
	list, err := b.list(ctx, IndexHolder, gateway.String())
	if err != nil {
		return nil, fmt.Errorf("list the hosts of APIGateway %q: %w", gateway, err)
	}
	mine := &Holdings{records: make(map[string]*coordinationv1.Lease, len(list.Items))}
	for i := range list.Items {
		mine.records[list.Items[i].Name] = &list.Items[i]
	}
	return mine, nil
}

func (b *Book) list(ctx context.Context, index, value string) (*coordinationv1.LeaseList, error) {
	list := &coordinationv1.LeaseList{}
	return list, b.Client.List(ctx, list, client.InNamespace(b.Namespace), client.MatchingFields{index: value},
		client.UnsafeDisableDeepCopy)
}

// Take gives an APIGateway a host, unless it belongs to another one: then it returns that one. What belonged to one of the same
// name it takes over. The error is ErrFull if its namespace has as many as it may have. mine is what Mine has returned.
func (b *Book) Take(ctx context.Context, gateway Gateway, claim Claim, mine *Holdings) (*types.NamespacedName, error) {
	known := mine.records[claim.recordName()]
	if known != nil && holds(Holders(known), claim.Part, gateway) {
		return nil, nil
	}
	record, err := b.read(ctx, claim)
	if err != nil {
		return nil, err
	}
	var holders []Holder
	if record != nil {
		holders = Holders(record)
	}
	if rival := rivalOf(holders, claim.Part, gateway.NamespacedName); rival != nil {
		key := rival.Key()
		return &key, nil
	}
	if holds(holders, claim.Part, gateway) {
		return nil, nil
	}
	next := newRecord(b.Namespace, claim, with(holders, claim.Part, gateway))
	if len(Holders(next)) > maxHolders {
		key := holders[0].Key()
		return &key, nil
	}
	if known == nil {
		if err := b.enter(ctx, gateway.Namespace, mine); err != nil {
			return nil, err
		}
	}
	if record == nil {
		return nil, classify(claim.Host, b.create(ctx, next))
	}
	next.UID, next.ResourceVersion = record.UID, record.ResourceVersion
	if err := b.Client.Update(ctx, next); err != nil {
		return nil, classify(claim.Host, err)
	}
	mine.records[next.Name] = next // Release may change it again
	return nil, nil
}

// enter counts one more record of a namespace, or returns ErrFull.
func (b *Book) enter(ctx context.Context, namespace string, mine *Holdings) error {
	if !mine.counted {
		list, err := b.list(ctx, IndexNamespace, namespace)
		if err != nil {
			return fmt.Errorf("count the hosts of namespace %q: %w", namespace, err)
		}
		mine.inNamespace, mine.counted = len(list.Items), true
	}
	if mine.inNamespace >= MaxHosts {
		return ErrFull
	}
	mine.inNamespace++
	return nil
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
func (b *Book) Release(ctx context.Context, gateway types.NamespacedName, asked []Claim, mine *Holdings) error {
	wanted := make(map[Claim]bool, len(asked))
	for _, claim := range asked {
		wanted[claim] = true
	}
	return b.giveUp(ctx, mine, func(record *coordinationv1.Lease, h Holder) bool {
		return h.Key() == gateway && !wanted[claimOf(record, h.Part)]
	})
}

// ReleaseFormer gives up what an APIGateway of the same name held that there was before. It must not be exposed any more.
func (b *Book) ReleaseFormer(ctx context.Context, gateway Gateway, mine *Holdings) error {
	return b.giveUp(ctx, mine, func(_ *coordinationv1.Lease, h Holder) bool { return h.isFormer(gateway) })
}

// Forget gives up what the APIGateways of a namespace hold of a host. There must be no such namespace any more.
func (b *Book) Forget(ctx context.Context, claim Claim, namespace string) error {
	record, err := b.read(ctx, claim)
	if err != nil || record == nil {
		return err
	}
	left := without(Holders(record), func(h Holder) bool { return h.Namespace == namespace })
	return classify(claim.Host, b.replace(ctx, record, left))
}

func (b *Book) giveUp(ctx context.Context, mine *Holdings, goes func(record *coordinationv1.Lease, h Holder) bool) error {
	var errs []error
	for _, record := range mine.records {
		holders := Holders(record)
		left := without(holders, func(h Holder) bool { return goes(record, h) })
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
