package hosts

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var leases = schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}

// server has the records, as the API server has them: a name is given once, and a write of a version that is not the last one
// is refused. Sometimes a write fails, with or without an effect.
type server struct {
	client.Client
	records map[string]*coordinationv1.Lease
	version int
	writes  int
	fail    func() (before, after bool)
}

var errLost = errors.New("the answer is lost")

func (s *server) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	record := s.records[key.Name]
	if record == nil {
		return apierrors.NewNotFound(leases, key.Name)
	}
	record.DeepCopyInto(into.(*coordinationv1.Lease))
	return nil
}

func (s *server) List(_ context.Context, into client.ObjectList, options ...client.ListOption) error {
	asked := client.ListOptions{}
	asked.ApplyOptions(options)
	index := HolderIndex
	value, found := asked.FieldSelector.RequiresExactMatch(IndexHolder)
	if !found {
		index = NamespaceIndex
		value, _ = asked.FieldSelector.RequiresExactMatch(IndexNamespace)
	}
	for _, name := range slices.Sorted(maps.Keys(s.records)) {
		if slices.Contains(index(s.records[name]), value) {
			list := into.(*coordinationv1.LeaseList)
			list.Items = append(list.Items, *s.records[name].DeepCopy())
		}
	}
	return nil
}

func (s *server) write(apply func() error) error {
	before, after := s.fail()
	if before {
		return errLost
	}
	s.writes++
	if err := apply(); err != nil {
		return err
	}
	if after {
		return errLost
	}
	return nil
}

func (s *server) keep(record *coordinationv1.Lease) {
	s.version++
	record = record.DeepCopy()
	record.ResourceVersion = strconv.Itoa(s.version)
	s.records[record.Name] = record
}

func (s *server) Create(_ context.Context, object client.Object, _ ...client.CreateOption) error {
	return s.write(func() error {
		if s.records[object.GetName()] != nil {
			return apierrors.NewAlreadyExists(leases, object.GetName())
		}
		s.keep(object.(*coordinationv1.Lease))
		return nil
	})
}

func (s *server) Update(_ context.Context, object client.Object, _ ...client.UpdateOption) error {
	return s.write(func() error {
		if s.records[object.GetName()].ResourceVersion != object.GetResourceVersion() {
			return apierrors.NewConflict(leases, object.GetName(), errors.New("another version"))
		}
		s.keep(object.(*coordinationv1.Lease))
		object.SetResourceVersion(strconv.Itoa(s.version))
		return nil
	})
}

func (s *server) Delete(_ context.Context, object client.Object, options ...client.DeleteOption) error {
	asked := client.DeleteOptions{}
	asked.ApplyOptions(options)
	return s.write(func() error {
		if s.records[object.GetName()].ResourceVersion != *asked.Preconditions.ResourceVersion {
			return apierrors.NewConflict(leases, object.GetName(), errors.New("another version"))
		}
		delete(s.records, object.GetName())
		return nil
	})
}

// world is a cluster: what gateways ask for, and what exposes them.
type world struct {
	server  *server
	book    *Book
	asked   map[types.NamespacedName][]Claim // of gateways that exist, whatever their age
	made    map[types.NamespacedName]int     // how often each was made
	exposed map[types.NamespacedName][]Claim
}

// ask has a gateway ask for hosts. It is made if it is not there.
func (w *world) ask(gateway types.NamespacedName, claims []Claim) {
	if _, there := w.asked[gateway]; !there {
		w.made[gateway]++
	}
	w.asked[gateway] = claims
}

func (w *world) holder(gateway types.NamespacedName) Gateway {
	return Gateway{gateway, types.UID(fmt.Sprintf("%v %d", gateway, w.made[gateway]))}
}

// reconcile does with a gateway what the controller does.
func (w *world) reconcile(ctx context.Context, gateway types.NamespacedName) error {
	mine, err := w.book.Mine(ctx, gateway)
	if err != nil {
		return err
	}
	of := w.holder(gateway)
	if _, there := w.asked[gateway]; there && mine.HasFormer(of) && len(w.exposed[gateway]) == 0 {
		return w.book.ReleaseFormer(ctx, of, mine)
	}
	var granted []Claim
	for _, claim := range w.asked[gateway] {
		rival, err := w.book.Take(ctx, of, claim, mine)
		if err != nil {
			return err // what is exposed stays as it is
		}
		if rival == nil {
			granted = append(granted, claim)
		}
	}
	w.exposed[gateway] = granted
	return w.book.Release(ctx, gateway, w.asked[gateway], mine)
}

// twice are two gateways that are served at the same time.
func (w *world) twice() error {
	for a, of := range w.exposed {
		for b, others := range w.exposed {
			for _, x := range of {
				for _, y := range others {
					if a != b && x.Index() == y.Index() && overlap(x.Part, y.Part) {
						return fmt.Errorf("%v and %v are both exposed, by %v and %v", x, y, a, b)
					}
				}
			}
		}
	}
	return nil
}

// Whatever is made, edited and deleted, in whatever order an operator that starts again and again looks at it, and whatever
// writes fail: two gateways never have a host at the same time, who has one keeps it until it asks for it no more, and in the
// end every host that somebody asks for belongs to somebody. Then nothing is written any more.
func TestNoHistoryGivesAHostToTwo(t *testing.T) {
	for seed := range uint64(500) {
		if err := play(t.Context(), rand.New(rand.NewPCG(seed, 1))); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

func play(ctx context.Context, random *rand.Rand) error {
	failing := true
	w := &world{
		server: &server{records: map[string]*coordinationv1.Lease{}, fail: func() (before, after bool) {
			return failing && random.IntN(8) == 0, failing && random.IntN(8) == 0
		}},
		asked: map[types.NamespacedName][]Claim{}, made: map[types.NamespacedName]int{}, exposed: map[types.NamespacedName][]Claim{},
	}
	w.book = &Book{Client: w.server, Namespace: "own"}
	var gateways []types.NamespacedName
	for i := range 5 {
		gateways = append(gateways, types.NamespacedName{Namespace: fmt.Sprint("team-", i%3), Name: fmt.Sprint("edge-", i)})
	}
	for range 60 {
		gateway := gateways[random.IntN(len(gateways))]
		switch random.IntN(8) {
		case 0:
			delete(w.asked, gateway)
			if random.IntN(2) == 0 { // what exposes it is gone too, before anybody looks
				delete(w.exposed, gateway)
			}
		case 1, 2:
			w.ask(gateway, someClaims(random))
		case 3:
			w.book = &Book{Client: w.server, Namespace: "own"}
		default:
			had := slices.Clone(w.exposed[gateway])
			err := w.reconcile(ctx, gateway)
			for _, claim := range had {
				if slices.Contains(w.asked[gateway], claim) && !slices.Contains(w.exposed[gateway], claim) {
					return fmt.Errorf("%v has lost %v (%w)", gateway, claim, err)
				}
			}
		}
		if err := w.twice(); err != nil {
			return err
		}
	}
	failing = false
	return settled(ctx, w, gateways)
}

func someClaims(random *rand.Rand) []Claim {
	var claims []Claim
	part := []string{"", "public", "internal"}[random.IntN(3)]
	for _, host := range []string{"", "a.example.com", "*.example.com"} {
		if random.IntN(2) == 0 {
			claims = append(claims, Claim{Place: "Ingress", Part: part, Host: host})
		}
	}
	return claims
}

// settled tells whether all is well when the operator has looked at everything.
func settled(ctx context.Context, w *world, gateways []types.NamespacedName) error {
	for range 3 {
		w.server.writes = 0
		for _, gateway := range gateways {
			if err := w.reconcile(ctx, gateway); err != nil {
				return err
			}
		}
	}
	if err := w.twice(); err != nil {
		return err
	}
	if w.server.writes > 0 {
		return fmt.Errorf("there are still %d writes", w.server.writes)
	}
	for gateway, claims := range w.asked {
		for _, claim := range claims {
			rival, err := w.book.Rival(ctx, gateway, claim)
			if err != nil {
				return err
			}
			if slices.Contains(w.exposed[gateway], claim) == (rival != nil) {
				return fmt.Errorf("%v is exposed by %v: %v, and belongs to %v", claim, gateway, rival == nil, rival)
			}
		}
	}
	for _, record := range w.server.records {
		for _, holder := range Holders(record) {
			if !slices.Contains(w.asked[holder.Key()], claimOf(record, holder.Part)) || holder.isFormer(w.holder(holder.Key())) {
				return fmt.Errorf("%v holds %v and does not ask for it", holder, record.Annotations)
			}
		}
	}
	return nil
}

// Who was there first gets what it asks for, in the order of the list. What was served beside each other goes on. An operator
// that ends meanwhile does no harm.
func TestTheFirstRecordsAreThoseOfWhoWasThereFirst(t *testing.T) {
	claim := func(part string) []Claim { return []Claim{{Place: "Ingress", Part: part, Host: "a.example.com"}} }
	key := func(name string) Gateway {
		return Gateway{types.NamespacedName{Namespace: "team", Name: name}, types.UID(name)}
	}
	list := []Present{{key("old"), claim("public")}, {key("young"), claim("public")}, {key("unnamed"), claim("")}, {key("inner"), claim("internal")}}
	s := &server{records: map[string]*coordinationv1.Lease{}}
	looked := 0
	present := func(context.Context) ([]Present, error) { looked++; return list, nil }
	failures := []bool{true, false, true, false, false} // of the first record, then of the marker
	s.fail = func() (before, after bool) {
		if len(failures) == 0 {
			return false, false
		}
		failed := failures[0]
		failures = failures[1:]
		return failed, false
	}
	var err error
	for range 4 {
		err = (&Book{Client: s, Namespace: "own"}).Begin(t.Context(), present)
	}
	if err != nil || looked != 3 {
		t.Errorf("it looked %d times (%v)", looked, err)
	}
	want := []Holder{{"team", "unnamed", "", "unnamed"}, {"team", "inner", "internal", "inner"}, {"team", "old", "public", "old"}}
	if got := Holders(s.records[list[0].Claims[0].recordName()]); !slices.Equal(got, want) {
		t.Errorf("the holders are %v, want %v", got, want)
	}
	book := &Book{Client: s, Namespace: "own"}
	for name, wants := range map[string]bool{"old": true, "young": false, "unnamed": true, "inner": true} {
		part := map[string]string{"old": "public", "young": "public", "inner": "internal"}[name]
		mine, err := book.Mine(t.Context(), key(name).NamespacedName)
		if err != nil {
			t.Fatal(err)
		}
		if rival, err := book.Take(t.Context(), key(name), claim(part)[0], mine); err != nil || (rival == nil) != wants {
			t.Errorf("%s: it belongs to %v (%v)", name, rival, err)
		}
	}
}

// A reconcile has time for some writes only. The next one goes on where it ended, so that many hosts are recorded too.
func TestTheFirstRecordsGoOnWhereTheyEnded(t *testing.T) {
	const many, perReconcile = 25, 10
	var list []Present
	for i := range many {
		list = append(list, Present{
			Gateway{types.NamespacedName{Namespace: "team", Name: "edge"}, "edge"}, []Claim{{Place: "Ingress", Host: fmt.Sprintf("%d.example.com", i)}},
		})
	}
	left := 0
	s := &server{records: map[string]*coordinationv1.Lease{}, fail: func() (before, after bool) {
		left--
		return left < 0, false
	}}
	book := &Book{Client: s, Namespace: "own"}
	for n := range 3 {
		left = perReconcile
		err := book.Begin(t.Context(), func(context.Context) ([]Present, error) { return list, nil })
		if want := min((n+1)*perReconcile, many+1); len(s.records) != want || (err == nil) != (want == many+1) {
			t.Errorf("after %d reconciles there are %d records (%v), want %d", n+1, len(s.records), err, want)
		}
	}
}

// A record that somebody has damaged holds nobody up.
func TestARecordThatCannotBeReadIsWrittenAnew(t *testing.T) {
	claim := Claim{Place: "Ingress", Host: "a.example.com"}
	gateway := Gateway{types.NamespacedName{Namespace: "team", Name: "edge"}, "edge"}
	damaged := newRecord("own", claim, nil)
	damaged.Annotations[annotationHolders] = "{"
	s := &server{records: map[string]*coordinationv1.Lease{}, fail: func() (bool, bool) { return false, false }}
	s.keep(damaged)
	book := &Book{Client: s, Namespace: "own"}
	mine, err := book.Mine(t.Context(), gateway.NamespacedName)
	if err != nil {
		t.Fatal(err)
	}
	if rival, err := book.Take(t.Context(), gateway, claim, mine); rival != nil || err != nil {
		t.Errorf("it belongs to %v (%v)", rival, err)
	}
	if got := Holders(s.records[claim.recordName()]); len(got) != 1 || got[0].Key() != gateway.NamespacedName {
		t.Errorf("the holders are %v", got)
	}
}

// A namespace that is made again for somebody else does not get the hosts of the former one by the names of its gateways, though
// nobody has looked meanwhile. One that is made again while what exposes it is still there keeps them.
func TestAGatewayThatIsMadeAgainInheritsNoHost(t *testing.T) {
	claim := Claim{Place: "Ingress", Host: "a.example.com"}
	edge, other := types.NamespacedName{Namespace: "team", Name: "edge"}, types.NamespacedName{Namespace: "other", Name: "edge"}
	for name, exposed := range map[string]bool{"what exposed it is gone": false, "what exposes it is there": true} {
		t.Run(name, func(t *testing.T) {
			w := &world{
				server: &server{records: map[string]*coordinationv1.Lease{}, fail: func() (bool, bool) { return false, false }},
				asked:  map[types.NamespacedName][]Claim{}, made: map[types.NamespacedName]int{}, exposed: map[types.NamespacedName][]Claim{},
			}
			w.book = &Book{Client: w.server, Namespace: "own"}
			look := func(gateways ...types.NamespacedName) {
				for _, gateway := range gateways {
					if err := w.reconcile(t.Context(), gateway); err != nil {
						t.Fatal(err)
					}
				}
			}
			w.ask(edge, []Claim{claim})
			look(edge)
			w.ask(other, []Claim{claim})
			look(other)
			delete(w.asked, edge)
			if !exposed {
				delete(w.exposed, edge)
			}
			w.ask(edge, []Claim{claim})
			look(edge, other, edge)
			owner := other
			if exposed {
				owner = edge
			}
			for gateway, of := range w.exposed {
				if (len(of) > 0) != (gateway == owner) {
					t.Errorf("%v has %v, and it is %v's", gateway, of, owner)
				}
			}
		})
	}
}

// The records of one namespace are bounded. What it has it keeps, and it gets others for those that it gives up.
func TestANamespaceHasSoManyHosts(t *testing.T) {
	s := &server{records: map[string]*coordinationv1.Lease{}, fail: func() (bool, bool) { return false, false }}
	book := &Book{Client: s, Namespace: "own"}
	gateway := func(namespace, name string) Gateway {
		return Gateway{types.NamespacedName{Namespace: namespace, Name: name}, types.UID(namespace + name)}
	}
	one, two := gateway("team", "one"), gateway("team", "two")
	claim := func(i int) Claim { return Claim{Place: "Ingress", Host: fmt.Sprintf("%d.example.com", i)} }
	for i := range MaxHosts {
		s.keep(newRecord("own", claim(i), with(nil, "", one)))
	}
	take := func(gateway Gateway, claim Claim) error {
		mine, err := book.Mine(t.Context(), gateway.NamespacedName)
		if err != nil {
			t.Fatal(err)
		}
		rival, err := book.Take(t.Context(), gateway, claim, mine)
		if rival != nil {
			t.Errorf("%v belongs to %v", claim, rival)
		}
		return err
	}
	more := claim(MaxHosts)
	for _, g := range []Gateway{one, two} {
		if err := take(g, more); !errors.Is(err, ErrFull) {
			t.Errorf("%v: %v, want %v", g.NamespacedName, err, ErrFull)
		}
	}
	if err := errors.Join(take(one, claim(7)), take(gateway("other", "one"), more)); err != nil {
		t.Error(err)
	}
	delete(s.records, claim(0).recordName())
	if err := take(two, claim(MaxHosts+1)); err != nil {
		t.Errorf("after one was given up: %v", err)
	}
	if n := len(s.records); n != MaxHosts+1 {
		t.Errorf("there are %d records", n)
	}
}
