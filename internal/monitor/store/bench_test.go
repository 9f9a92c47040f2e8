package store

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipway-dev/slipway/internal/monitor/change"
)

// fleet is objects of about 2 KiB, whose specs and states change as those of real ones do.
type fleet struct {
	random  *rand.Rand
	kinds   []change.Kind
	objects int
	rv      int
}

func newFleet(kinds, objects int) *fleet {
	f := &fleet{random: rand.New(rand.NewPCG(11, 12)), objects: objects}
	for k := range kinds {
		f.kinds = append(f.kinds, change.Kind{
			Group: fmt.Sprintf("group-%d.example.com", k/5), Version: "v1", Kind: fmt.Sprintf("Kind%d", k), Resource: fmt.Sprintf("kind%ds", k),
			Namespaced: true, Definition: uidOf(1_000_000 + k),
		})
	}
	return f
}

func quoted(format string, args ...any) json.RawMessage {
	text, _ := json.Marshal(fmt.Sprintf(format, args...))
	return text
}

// body is an object of about 2 KiB.
func (f *fleet) body(n int) []byte {
	r := f.random
	var env []string
	for i := range 12 {
		env = append(env, fmt.Sprintf(`{"name":"SETTING_%d","value":"%x"}`, i, r.Uint64()))
	}
	return []byte(fmt.Sprintf(`{"apiVersion":"group.example.com/v1","kind":"Kind","metadata":{"name":"object-%d","namespace":"team-%d","labels":{"app":"web","tier":"%d"},`+
		`"uid":"%s"},"spec":{"image":"registry.example.com/team/app:%016x","replicas":%d,"env":[%s],"resources":{"limits":{"cpu":"500m","memory":"%dMi"}},`+
		`"note":"%s"},"status":{"observedGeneration":%d,"conditions":[{"type":"Ready","status":"True","reason":"AllReplicasReady","message":"3 of 3 replicas are ready"},`+
		`{"type":"Progressing","status":"False","reason":"Complete","message":"revision %x is rolled out"}],"endpoint":"10.%d.%d.%d:8080"}}`,
		n, n%40, n%3, uidOf(n), r.Uint64(), r.IntN(9), strings.Join(env, ","), 64*r.IntN(20), strings.Repeat("text that stays the same; ", 30), r.IntN(99),
		r.Uint32(), r.IntN(255), r.IntN(255), r.IntN(255)))
}

func (f *fleet) fields() (string, []change.Field) {
	r := f.random
	if r.IntN(3) == 0 {
		return "", []change.Field{
			{Path: ".spec.image", Op: change.Changed, Old: quoted("registry.example.com/team/app:%016x", r.Uint64()), New: quoted("registry.example.com/team/app:%016x", r.Uint64())},
			{Path: ".spec.replicas", Op: change.Changed, Old: quoted("%d", r.IntN(9)), New: quoted("%d", r.IntN(9))},
		}
	}
	return "status", []change.Field{
		{Path: `.status.conditions[type="Ready"].message`, Op: change.Changed, Old: quoted("%d of 9 replicas are ready", r.IntN(9)), New: quoted("waiting for pod app-%08x-%05x to become ready", r.Uint32(), r.IntN(1<<20))},
		{Path: `.status.conditions[type="Ready"].reason`, Op: change.Changed, Old: quoted("AllReplicasReady"), New: quoted("Progressing")},
		{Path: `.status.conditions[type="Ready"].status`, Op: change.Changed, Old: quoted("True"), New: quoted("False")},
		{Path: ".status.observedGeneration", Op: change.Changed, Old: quoted("%d", r.IntN(99)), New: quoted("%d", r.IntN(99))},
	}
}

// batch makes changes of objects of one kind.
func (f *fleet) batch(changes int, at time.Time, states bool) Batch {
	k := f.random.IntN(len(f.kinds))
	b := Batch{Kind: f.kinds[k]}
	for range changes {
		f.rv++
		n := f.random.IntN(f.objects/len(f.kinds))*len(f.kinds) + k
		subresource, fields := f.fields()
		r := change.Record{
			Kind: f.kinds[k], Namespace: fmt.Sprintf("team-%d", n%40), Name: fmt.Sprintf("object-%d", n), UID: uidOf(n), ResourceVersion: fmt.Sprint(100_000_000 + f.rv),
			Generation: int64(f.rv % 90), Type: change.Updated, Time: at, Fields: fields, Folded: int64(f.random.IntN(3)),
			Actor: change.Actor{Name: fmt.Sprintf("controller-%d", n%12), Operation: "Update", Subresource: subresource, Confidence: change.Likely, Source: "managedFields"},
		}
		b.Records = append(b.Records, r)
		if states {
			b.Put = append(b.Put, change.State{
				Namespace: r.Namespace, Name: r.Name, UID: r.UID, ResourceVersion: r.ResourceVersion, Generation: r.Generation, Hash: change.Hash{byte(f.rv)},
				Body:     f.body(n),
				Managers: []byte(`[{"manager":"controller","operation":"Update","apiVersion":"v1","time":"2026-11-20T10:00:00Z","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:image":{},"f:replicas":{}}}}]`),
			})
		}
	}
	b.Checkpoint = fmt.Sprint(100_000_000 + f.rv)
	return b
}

func processorTime() time.Duration {
	var usage syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// BenchmarkCommit stores changes of 2 KiB objects durably, by 8 callers who wait for each batch.
func BenchmarkCommit(b *testing.B) {
	for _, perBatch := range []int{1, 10, 50} {
		b.Run(fmt.Sprintf("batches of %d", perBatch), func(b *testing.B) {
			options := withTestDefaults(b, Options{})
			options.hasty = false
			s, err := Open(b.Context(), options)
			if err != nil {
				b.Fatal(err)
			}
			f := newFleet(20, 10_000)
			batches := make([]Batch, 0, b.N/perBatch+1)
			for len(batches)*perBatch < b.N {
				batches = append(batches, f.batch(perBatch, options.Clock.Now(), true))
			}
			var next atomic.Int64
			var wg sync.WaitGroup
			var mu sync.Mutex
			var waits []time.Duration
			start := processorTime()
			b.ResetTimer()
			for range 8 {
				wg.Go(func() {
					for {
						i := int(next.Add(1)) - 1
						if i >= len(batches) {
							return
						}
						began := time.Now()
						if err := s.Commit(b.Context(), batches[i]); err != nil {
							b.Error(err)
							return
						}
						mu.Lock()
						waits = append(waits, time.Since(began))
						mu.Unlock()
					}
				})
			}
			wg.Wait()
			b.StopTimer()
			n := float64(len(batches) * perBatch)
			slices.Sort(waits)
			stats := s.Stats()
			b.ReportMetric(n/b.Elapsed().Seconds(), "changes/s")
			b.ReportMetric(float64((processorTime()-start).Microseconds())/n, "cpu-µs/change")
			b.ReportMetric(float64(waits[len(waits)*99/100].Microseconds())/1000, "p99-ms")
			b.ReportMetric(float64(stats.Commits)/b.Elapsed().Seconds(), "groups/s")
			if err := s.Close(); err != nil {
				b.Fatal(err)
			}
			var bytes int64
			days, _ := filepath.Glob(filepath.Join(options.Dir, "changes-*"))
			for _, day := range days {
				if info, err := os.Stat(day); err == nil {
					bytes += info.Size()
				}
			}
			b.ReportMetric(float64(bytes-stats.SnapshotBytes)/n, "B/change")
			b.ReportMetric(float64(stats.SnapshotBytes)/n, "snapshot-B/change")
		})
	}
}

// BenchmarkQueries asks a store of a million changes, which it builds once.
func BenchmarkQueries(b *testing.B) {
	const changes = 1_000_000
	clock := newClock()
	s := open(b, Options{Clock: clock, MaxBytes: 8 << 30})
	f := newFleet(50, 20_000)
	began := time.Now()
	start := clock.Now()
	for f.rv < changes {
		commit(b, s, f.batch(500, clock.Step(86*time.Second), f.rv < 100_000)) // two days
	}
	stats := s.Stats()
	b.Logf("%d changes in %s, %d files, %.0f B per change with indexes, of which %.0f payload, and %.0f snapshot; state %d MiB", stats.Changes,
		time.Since(began).Round(time.Second), stats.Files, float64(stats.Bytes-stats.StateBytes-stats.SnapshotBytes)/changes,
		float64(stats.PayloadBytes)/changes, float64(stats.SnapshotBytes)/changes, stats.StateBytes/mebibyte)
	random := rand.New(rand.NewPCG(1, 1))
	namespace := func() string { return fmt.Sprintf("team-%d", random.IntN(40)) }
	kind := func() (string, string) {
		k := f.kinds[random.IntN(len(f.kinds))]
		return k.Group, k.Resource
	}
	for _, q := range []struct {
		name string
		make func() Query
	}{
		{"object by UID", func() Query { return Query{UID: uidOf(random.IntN(20_000))} }},
		{"object by name", func() Query {
			n := random.IntN(20_000)
			return Query{Group: f.kinds[n%50].Group, Resource: f.kinds[n%50].Resource, Namespace: fmt.Sprintf("team-%d", n%40), Name: fmt.Sprintf("object-%d", n)}
		}},
		{"last hour", func() Query { return Query{Since: clock.Now().Add(-time.Hour)} }},
		{"an hour of yesterday", func() Query {
			at := start.Add(time.Duration(random.IntN(40)) * time.Hour)
			return Query{Since: at, Until: at.Add(time.Hour)}
		}},
		{"actor", func() Query { return Query{Actor: fmt.Sprintf("controller-%d", random.IntN(12))} }},
		{"actor that there is not", func() Query { return Query{Actor: "nobody"} }},
		{"namespace", func() Query { return Query{Namespace: namespace()} }},
		{"kind", func() Query { g, r := kind(); return Query{Group: g, Resource: r} }},
		{"kind and namespace and actor", func() Query {
			g, r := kind()
			return Query{Group: g, Resource: r, Namespace: namespace(), Actor: fmt.Sprintf("controller-%d", random.IntN(12))}
		}},
		{"deletions", func() Query { return Query{Types: []change.Type{change.Deleted, change.Gap}} }},
		{"allowed in one namespace", func() Query {
			mine := namespace()
			return Query{Allow: func(_ schema.GroupResource, namespace string) Share { return Share{All: namespace == mine} }}
		}},
		{"the oldest thousand", func() Query { return Query{OldestFirst: true, Limit: 1000} }},
	} {
		b.Run(q.name, func(b *testing.B) {
			var times []time.Duration
			for b.Loop() {
				query := q.make()
				began := time.Now()
				if _, err := s.Changes(b.Context(), query); err != nil {
					b.Fatal(err)
				}
				times = append(times, time.Since(began))
			}
			slices.Sort(times)
			b.ReportMetric(float64(times[len(times)*95/100].Microseconds())/1000, "p95-ms")
		})
	}
	b.Run("rate", func(b *testing.B) {
		for b.Loop() {
			if _, err := s.Rate(b.Context(), start, 60); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkMarks fills a memory with the marks of 100,000 objects.
func BenchmarkMarks(b *testing.B) {
	s := open(b, Options{})
	f := newFleet(1, 100_000)
	for n := 0; n < 100_000; n += 1000 {
		batch := Batch{Kind: f.kinds[0]}
		for i := range 1000 {
			batch.Put = append(batch.Put, change.State{Name: fmt.Sprintf("object-%d", n+i), Namespace: "x", UID: uidOf(n + i), ResourceVersion: fmt.Sprint(100_000_000 + n + i), Body: f.body(n + i)})
		}
		commit(b, s, batch)
	}
	b.Logf("%.0f B of state on disk per object", float64(s.Stats().StateBytes)/100_000)
	for b.Loop() {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		marks := make([]change.Mark, 0, 100_000)
		for mark, err := range s.Marks(b.Context(), f.kinds[0].GroupResource()) {
			if err != nil {
				b.Fatal(err)
			}
			marks = append(marks, mark)
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(len(marks)), "B/mark")
		runtime.KeepAlive(marks)
	}
}
