package hosts

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	klabels "k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
)

const (
	// Label is on every record. Its value tells what it is.
	Label = "slipway.dev/record"
	// ofHost and ofBeginning are those values: a host, and that present owners were recorded.
	ofHost, ofBeginning = "host", "hosts-began"

	annotationPlace   = "slipway.dev/place"
	annotationHost    = "slipway.dev/host"
	annotationHolders = "slipway.dev/holders"

	// beginningName is the name of the record that tells that present owners were recorded.
	beginningName = "slipway-hosts"
	// maxHolders bounds a record. A host has one holder for each part of a place, and there are few parts.
	maxHolders = 64
	// MaxHosts is how many records the APIGateways of one namespace may have. One more gets no further host. Several that are
	// looked at at the same time may pass it by what each of them asks for.
	MaxHosts = 5000
)

// Selector finds all records.
func Selector() klabels.Selector {
	exists, _ := klabels.NewRequirement(Label, selection.Exists, nil) // of a constant: there is no error
	return klabels.NewSelector().Add(*exists)
}

// Claim is a host at a place. The empty host stands for any host that has no record.
type Claim struct {
	// Place is where gateways are exposed together: the Ingresses of a cluster, or a Gateway.
	Place string
	// Part of the place: a class of Ingresses, or a listener. Empty: it is not known, and may be any.
	Part string
	Host string
}

// Index is the value by which claims of the same record are found.
func (c Claim) Index() string { return c.Place + " " + c.Host }

// recordName is the name of the record of a claim. A host may be longer than a name.
func (c Claim) recordName() string {
	sum := sha256.Sum256([]byte(c.Index()))
	return fmt.Sprintf("slipway-host-%x", sum[:20])
}

// overlap reports whether what is sent to one part may be sent to the other one.
func overlap(a, b string) bool { return a == b || a == "" || b == "" }

// Gateway is an APIGateway that asks for hosts. One that is made again, or whose namespace is, has another UID.
type Gateway struct {
	types.NamespacedName

	UID types.UID
}

// Holder is an APIGateway that a host belongs to at a part of a place.
type Holder struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Part      string `json:"part,omitempty"`
	// UID is that of the APIGateway. A record that somebody has written without it is of any with the name.
	UID types.UID `json:"uid,omitempty"`
}

// Key names the APIGateway.
func (h Holder) Key() types.NamespacedName {
	return types.NamespacedName{Namespace: h.Namespace, Name: h.Name}
}

// isFormer reports whether the holder is an APIGateway of the same name that there was before.
func (h Holder) isFormer(gateway Gateway) bool {
	return h.Key() == gateway.NamespacedName && h.UID != "" && h.UID != gateway.UID
}

// holderOf is an APIGateway as the holder of a host at a part.
func holderOf(gateway Gateway, part string) Holder {
	return Holder{Namespace: gateway.Namespace, Name: gateway.Name, Part: part, UID: gateway.UID}
}

// holds reports whether one of the holders is this APIGateway, at this part.
func holds(holders []Holder, part string, gateway Gateway) bool {
	return slices.Contains(holders, holderOf(gateway, part))
}

// rivalOf returns another holder that keeps an APIGateway from having the host at a part, or nil.
func rivalOf(holders []Holder, part string, gateway types.NamespacedName) *Holder {
	for i := range holders {
		if holders[i].Key() != gateway && overlap(holders[i].Part, part) {
			return &holders[i]
		}
	}
	return nil
}

// with adds a holder, in the place of one of the same name at this part.
func with(holders []Holder, part string, gateway Gateway) []Holder {
	others := without(holders, func(h Holder) bool { return h.Key() == gateway.NamespacedName && h.Part == part })
	return sorted(append(others, holderOf(gateway, part)))
}

// without takes some of the holders away.
func without(holders []Holder, goes func(Holder) bool) []Holder {
	return slices.DeleteFunc(slices.Clone(holders), goes)
}

func sorted(holders []Holder) []Holder {
	slices.SortFunc(holders, func(a, b Holder) int {
		return cmp.Or(strings.Compare(a.Part, b.Part), strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	return holders
}

// newRecord is the record of a claim's host.
func newRecord(namespace string, of Claim, holders []Holder) *coordinationv1.Lease {
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: of.recordName(), Labels: labels(ofHost),
		Annotations: map[string]string{annotationPlace: of.Place, annotationHost: of.Host},
	}}
	setHolders(lease, holders)
	return lease
}

func labels(record string) map[string]string {
	return map[string]string{slipwayv1alpha1.LabelManagedBy: slipwayv1alpha1.ManagedBySlipway, Label: record}
}

// setHolders writes the holders into a record. holderIdentity is for people: kubectl shows it.
func setHolders(lease *coordinationv1.Lease, holders []Holder) {
	raw, _ := json.Marshal(holders) // of strings: there is no error
	lease.Annotations[annotationHolders] = string(raw)
	if len(holders) > 0 {
		first := holders[0].Key().String()
		lease.Spec.HolderIdentity = &first
	}
}

// Holders are those of a record. One that cannot be read has none: the next who asks writes it anew.
func Holders(lease *coordinationv1.Lease) []Holder {
	if lease.Labels[Label] != ofHost {
		return nil
	}
	var holders []Holder
	if json.Unmarshal([]byte(lease.Annotations[annotationHolders]), &holders) != nil {
		return nil
	}
	return holders
}

// IndexOf is the value by which claims of a record's host are found; empty for a record of something else.
func IndexOf(lease *coordinationv1.Lease) string {
	if lease.Labels[Label] != ofHost {
		return ""
	}
	return claimOf(lease, "").Index()
}

func claimOf(lease *coordinationv1.Lease, part string) Claim {
	return Claim{Place: lease.Annotations[annotationPlace], Part: part, Host: lease.Annotations[annotationHost]}
}
