//go:build backupfaults

package main

import (
	"cmp"
	"crypto/ecdsa"
	"crypto/elliptic"
	crand "crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/big"
	"net"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/internal/backup/mover"
)

var (
	faultSeed  = flag.Uint64("fault-seed", 1, "chooses where faults happen")
	faultCase  = flag.String("fault-case", "", "only the rows whose names match")
	faultTable = flag.String("fault-table", "", "file to write the table to")
)

func allRows() []row {
	rows := slices.Concat(placeRows(), sourceRows(), damages(), processRows(), serverRows())
	for n := range rows {
		rows[n].times = cmp.Or(rows[n].times, 3)
		rows[n].patience = cmp.Or(rows[n].patience, time.Minute)
	}
	return rows
}

// line is what came of a row.
type line struct {
	injections, falseSuccesses, healed, undamaged int
	ends                                          map[string]int
}

// TestNoFaultEndsAsASuccessThatIsNone injects every kind of fault into a snapshot and its verification. Whatever is then
// called a backup has to restore byte by byte.
func TestNoFaultEndsAsASuccessThatIsNone(t *testing.T) {
	a := newArena(t)
	chosen := regexp.MustCompile(*faultCase)
	lines := map[string]*line{}
	var mu sync.Mutex
	var running sync.WaitGroup
	places := make(chan struct{}, 8)
	rows := slices.DeleteFunc(allRows(), func(r row) bool { return !chosen.MatchString(r.name) })
	for number, r := range rows {
		lines[r.name] = &line{ends: map[string]int{}}
		for n := range r.times * len(r.places) {
			s3 := r.places[n%len(r.places)] == 's'
			running.Go(func() {
				places <- struct{}{}
				defer func() { <-places }()
				i := a.inject(t, r, s3, *faultSeed<<20+uint64(number)<<8+uint64(n))
				v := i.play()
				mu.Lock()
				defer mu.Unlock()
				judge(t, r, s3, lines[r.name], v)
				if v.outcome != completed || v.lied != nil {
					t.Logf("%s: %s: %s", r.name, v.outcome, v.said)
				}
				if !t.Failed() {
					_ = os.RemoveAll(i.path("source"))
				}
			})
		}
	}
	running.Wait()
	report(t, rows, lines)
}

// judge notes what came of an injection.
func judge(t *testing.T, r row, s3 bool, l *line, v verdict) {
	t.Helper()
	l.injections++
	l.ends[v.outcome]++
	at := fmt.Sprintf("%s (S3: %v)", r.name, s3)
	if v.lied != nil {
		l.falseSuccesses++
		t.Errorf("%s: FALSE SUCCESS: %v", at, v.lied)
	}
	if !slices.Contains(r.want, v.outcome) {
		t.Errorf("%s: ended with %s, want one of %q", at, v.outcome, r.want)
	}
	if v.outcome == completed {
		l.undamaged++
	} else if v.again == completed {
		l.healed++
	}
	for _, problem := range v.problems {
		t.Errorf("%s: %s", at, problem)
	}
}

// report writes the table.
func report(t *testing.T, rows []row, lines map[string]*line) {
	t.Helper()
	var table strings.Builder
	injections, lied := 0, 0
	table.WriteString("| fault | where | injections | how the attempt ended | next attempt completed | false successes |\n|---|---|---|---|---|---|\n")
	for _, r := range rows {
		l := lines[r.name]
		injections += l.injections
		lied += l.falseSuccesses
		var ends []string
		for _, end := range slices.Sorted(maps.Keys(l.ends)) {
			ends = append(ends, fmt.Sprintf("%s %d", end, l.ends[end]))
		}
		again := fmt.Sprint(l.healed, " of ", l.injections-l.undamaged)
		if r.lasting || l.undamaged == l.injections {
			again = ""
		}
		where := strings.NewReplacer("fs", "folder, S3", "f", "folder", "s", "S3").Replace(r.places)
		fmt.Fprintf(&table, "| %s | %s | %d | %s | %s | %d |\n", strings.TrimPrefix(r.name, "S3: "), where, l.injections, strings.Join(ends, ", "), again, l.falseSuccesses)
	}
	t.Logf("measured: seed %d: %d kinds of faults, %d injections, %d false successes", *faultSeed, len(rows), injections, lied)
	if *faultCase == "" && (len(rows) < 40 || injections < 200) {
		t.Errorf("only %d kinds and %d injections", len(rows), injections)
	}
	if *faultTable != "" {
		if err := os.WriteFile(*faultTable, []byte(table.String()), 0o644); err != nil {
			t.Error(err)
		}
	}
}

// TestTheJudgeFindsFalseSuccesses plants programs that lie. Each has to be found by restoring.
func TestTheJudgeFindsFalseSuccesses(t *testing.T) {
	a := newArena(t)
	verifierThatDoesNot := func(i *injection) {
		i.lie = func(step mover.Step) ([]byte, bool) {
			if step != mover.StepVerify {
				return nil, false
			}
			made, err := mover.ParseResult(string(i.results[mover.StepSnapshot]))
			if err != nil {
				t.Fatal(err)
			}
			raw, err := json.Marshal(mover.Result{
				Command: "verify", OK: true, RepositoryID: made.RepositoryID, Snapshots: []mover.SnapshotLine{{ID: made.Snapshot.ID, Manifest: made.Snapshot.Manifest}},
				Verify: &mover.VerifyResult{Files: made.Snapshot.Stats.Files, Bytes: made.Snapshot.Stats.Bytes},
			})
			if err != nil {
				t.Fatal(err)
			}
			return raw, true
		}
	}
	for name, inject := range map[string]func(*injection){
		"a verifier that is skipped": func(i *injection) {
			verifierThatDoesNot(i)
			between := i.lie
			i.lie = func(step mover.Step) ([]byte, bool) {
				if step == mover.StepVerify {
					for _, path := range i.blobs("p") {
						remove(i, path)
					}
				}
				return between(step)
			}
		},
		"a verifier that reads nothing": func(i *injection) {
			i.config.Verify.ReadPercent = 0
			i.between = func() {
				// In the middle of the new file, whose folders and counts are as they should be.
				path := i.pick("p", true)
				content, err := os.ReadFile(path)
				i.check(err)
				content[100_000] ^= 1
				i.check(os.WriteFile(path, content, 0o600))
			}
		},
		"a snapshot that ignores what it cannot read": func(i *injection) {
			unreadable(i, "source/sub/file-7")
			i.config.Snapshot.AllowPartial = true
		},
		"a snapshot that leaves something out": func(i *injection) { i.config.Snapshot.Exclude = []string{"file-9"} },
		"a snapshot of the day before":         func(i *injection) { i.config.Snapshot.IgnoreChangeTime = true; staleFile(i) },
	} {
		t.Run(name, func(t *testing.T) {
			i := a.inject(t, row{name: name, inject: inject, lasting: true, patience: time.Minute}, false, 1)
			if v := i.play(); v.outcome != completed || v.lied == nil {
				t.Errorf("the judge did not find it: %+v\n%s", v, i.said.String())
			}
		})
	}
}

// staleFile changes a file behind the back of a snapshot that goes by size and time alone.
func staleFile(i *injection) {
	path := i.path("source/sub/file-9")
	info, err := os.Stat(path)
	i.check(err)
	i.check(os.WriteFile(path, make([]byte, info.Size()), info.Mode()))
	i.check(os.Chtimes(path, info.ModTime(), info.ModTime()))
}

// forged is a certificate that nobody trusts.
func forged(t testing.TB) *tls.Config {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), crand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "impostor"}, NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"example.com", "localhost"}, IsCA: true, BasicConstraintsValid: true,
	}
	raw, err := x509.CreateCertificate(crand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{raw}, PrivateKey: key}}}
}
