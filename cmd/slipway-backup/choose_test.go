package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-dev/slipway/internal/backup/engine"
	"github.com/slipway-dev/slipway/internal/backup/mover"
	"github.com/slipway-dev/slipway/internal/testing/property"
)

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// taken is a snapshot that took a minute, so many hours before noon.
func taken(id, volume string, hours int, verified bool) engine.Snapshot {
	s := engine.Snapshot{ID: id, Volume: volume, Start: noon.Add(-time.Duration(hours) * time.Hour)}
	s.SourceTime, s.End = s.Start, s.Start.Add(time.Minute)
	if verified {
		s.Verified = &engine.Verification{Time: s.End}
	}
	return s
}

func TestTheNewestVerifiedSnapshotIsRestored(t *testing.T) {
	one := []engine.Snapshot{taken("old", "", 48, true), taken("good", "", 24, true), taken("new", "", 1, false)}
	two := []engine.Snapshot{taken("a", "data-0", 3, true), taken("b", "data-1", 2, true), taken("c", "data-0", 1, true)}
	tests := map[string]struct {
		all  []engine.Snapshot
		ask  mover.Restore
		want string
		kind engine.Kind
	}{
		"the newest is not verified":               {one, mover.Restore{}, "good", ""},
		"as of the end of one":                     {one, mover.Restore{AsOf: noon.Add(-24*time.Hour + time.Minute)}, "good", ""},
		"as of a moment in which one was made":     {one, mover.Restore{AsOf: noon.Add(-24*time.Hour + time.Second)}, "old", ""},
		"as of a time before all":                  {one, mover.Restore{AsOf: noon.Add(-49 * time.Hour)}, "", engine.KindNotFound},
		"none is verified":                         {one[2:], mover.Restore{}, "", engine.KindNotFound},
		"there is none":                            {nil, mover.Restore{}, "", engine.KindNotFound},
		"several volumes and none is named":        {two, mover.Restore{}, "", engine.KindInvalid},
		"one of several volumes":                   {two, mover.Restore{Volume: "data-0"}, "c", ""},
		"one of several volumes, as of a time":     {two, mover.Restore{Volume: "data-0", AsOf: noon.Add(-2 * time.Hour)}, "a", ""},
		"a volume that the repository has nothing": {two, mover.Restore{Volume: "data-2"}, "", engine.KindNotFound},
		"the latest and one by its ID":             {one, mover.Restore{Snapshot: "old"}, "", engine.KindInvalid},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := latest(tc.all, tc.ask)
			if got != tc.want || (tc.kind == "") != (err == nil) || (err != nil && engine.KindOf(err) != tc.kind) {
				t.Errorf("got %q, %v, want %q, %s", got, err, tc.want, tc.kind)
			}
		})
	}
}

// A copy that was read from a snapshot of the volume is of the moment of that, however much later it was read.
func TestACopyIsOfTheMomentOfItsSource(t *testing.T) {
	// staged was asked for so many hours before it was read.
	staged := func(id string, hours, before int) engine.Snapshot {
		s := taken(id, "", hours, true)
		s.SourceTime = s.Start.Add(-time.Duration(before) * time.Hour)
		return s
	}
	all := []engine.Snapshot{taken("live", "", 10, true), staged("late", 2, 9), staged("first", 5, 1), staged("second", 4, 2)}
	tests := map[string]struct {
		all  []engine.Snapshot
		asOf time.Time
		want string
		kind engine.Kind
	}{
		"the newest is what was asked for last":            {all[:2], time.Time{}, "live", ""},
		"of one moment the one that was read later":        {all, time.Time{}, "second", ""},
		"as of when reading began":                         {all, noon.Add(-4 * time.Hour), "second", ""},
		"as of just before":                                {all, noon.Add(-4*time.Hour - time.Second), "first", ""},
		"the driver may take it later than it was asked":   {all, noon.Add(-6 * time.Hour), "live", ""},
		"a live copy may hold what was written until then": {all, noon.Add(-10 * time.Hour), "", engine.KindNotFound},
		"as of when a live copy had been read":             {all, noon.Add(-10*time.Hour + time.Minute), "live", ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := latest(tc.all, mover.Restore{AsOf: tc.asOf})
			if got != tc.want || (tc.kind == "") != (err == nil) || (err != nil && engine.KindOf(err) != tc.kind) {
				t.Errorf("got %q, %v, want %q, %s", got, err, tc.want, tc.kind)
			}
		})
	}
	// A day is kept by the moment, too: both are of the first of May, though one was read on the second.
	days := []engine.Snapshot{staged("read on the second", -13, 14), taken("of the first", "", 0, true)}
	remove, err := planned(days, mover.Retention{Daily: 5, Limit: 10}, noon.AddDate(0, 0, 1))
	if diff := cmp.Diff([]string{"read on the second"}, remove); diff != "" || err != nil {
		t.Errorf("%v, (-want +got):\n%s", err, diff)
	}
}

func TestWhatExpires(t *testing.T) {
	var month []engine.Snapshot
	for day := range 30 {
		month = append(month, taken(fmt.Sprintf("%02d", day), "", day*24, true))
	}
	bad := slices.Clone(month)
	for i := range 10 {
		bad[i].Verified = nil
	}
	tests := map[string]struct {
		all   []engine.Snapshot
		rules mover.Retention
		want  []string
		kind  engine.Kind
	}{
		"a period":                          {month, mover.Retention{Within: "26d", Limit: 10}, []string{"27", "28", "29"}, ""},
		"a count":                           {month, mover.Retention{Last: 28, Limit: 10}, []string{"28", "29"}, ""},
		"too many at once":                  {month, mover.Retention{Last: 3, Limit: 10}, nil, engine.KindMassDeletion},
		"too many at once, confirmed":       {month[:5], mover.Retention{Last: 3, Limit: 1, Confirmed: true}, []string{"03", "04"}, ""},
		"only verified ones count":          {bad, mover.Retention{Last: 19, Limit: 10}, []string{"29"}, ""},
		"each volume for itself":            {append([]engine.Snapshot{taken("other", "data-1", 999, true)}, month[:3]...), mover.Retention{Last: 2, Limit: 1}, []string{"02"}, ""},
		"no rule":                           {month, mover.Retention{Limit: 100}, nil, engine.KindInvalid},
		"a period that nobody understands":  {month, mover.Retention{Within: "5m"}, nil, engine.KindInvalid},
		"a time zone that there is nowhere": {month, mover.Retention{Last: 1, TimeZone: "Moon/Crater"}, nil, engine.KindInvalid},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := planned(tc.all, tc.rules, noon)
			slices.Sort(got)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if (tc.kind == "") != (err == nil) || (err != nil && engine.KindOf(err) != tc.kind) {
				t.Errorf("got %v, want %s", err, tc.kind)
			}
		})
	}
}

// Whatever the history and the rules: a restore of the newest copy gives after retention what it gave before.
func TestRetentionTakesNothingFromARestoreOfTheNewest(t *testing.T) {
	count, source := property.Inputs(t, 20000, 2000)
	random := source(3)
	removed := 0
	for range count {
		all := make([]engine.Snapshot, random.IntN(40))
		for i := range all {
			// Some begin in the future: clocks differ.
			all[i] = taken(fmt.Sprintf("s%d", i), fmt.Sprintf("data-%d", random.IntN(3)), random.IntN(2000)-20, random.IntN(3) > 0)
		}
		rules := mover.Retention{Last: random.IntN(4), Daily: random.IntN(8), Weekly: random.IntN(4), Limit: len(all)}
		if random.IntN(2) == 0 {
			rules.Within = fmt.Sprintf("%dd", 1+random.IntN(30))
		}
		ids, err := planned(all, rules, noon)
		if rules.Last+rules.Daily+rules.Weekly == 0 && rules.Within == "" {
			if engine.KindOf(err) != engine.KindInvalid && len(all) > 0 {
				t.Fatalf("%+v keep nothing, and are taken: %v", rules, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		removed += len(ids)
		left := slices.DeleteFunc(slices.Clone(all), func(s engine.Snapshot) bool { return slices.Contains(ids, s.ID) })
		for _, volume := range []string{"data-0", "data-1", "data-2"} {
			before, after := restored(all, volume), restored(left, volume)
			if before != after {
				t.Fatalf("%+v of %+v remove %q: %s is %s before and %s after", rules, all, ids, volume, before, after)
			}
		}
	}
	if removed < count {
		t.Errorf("only %d snapshots are removed in %d histories", removed, count)
	}
}

// restored is the time of the newest verified snapshot of a volume, or why there is none.
func restored(all []engine.Snapshot, volume string) string {
	id, err := latest(all, mover.Restore{Volume: volume})
	if err != nil {
		return string(engine.KindOf(err))
	}
	return all[slices.IndexFunc(all, func(s engine.Snapshot) bool { return s.ID == id })].Start.String()
}

// The ID beside the password is as good as the one of the configuration: neither lets another repository be made or used.
func TestAKnownRepositoryIsNeverMadeAnew(t *testing.T) {
	b := newBench(t)
	b.write(t, "source/a", "x")
	b.config.Snapshot.Run = "1"
	b.config.Repository.Create = true
	id := b.must(t, "snapshot").RepositoryID
	b.write(t, "secret/repositoryID", id+"\n")
	b.config.Snapshot.Run = "2"
	b.must(t, "snapshot")

	b.write(t, "secret/repositoryID", strings.Repeat("0", len(id)))
	if o := b.run(t, "snapshot"); o.result.Kind != engine.KindWrongRepository {
		t.Errorf("another ID: %s", o.raw)
	}
	b.write(t, "secret/repositoryID", id)
	b.config.Repository.Filesystem.Path = b.path("repository/team/empty")
	if o := b.run(t, "snapshot"); o.result.Kind != engine.KindNotFound {
		t.Errorf("an empty place: %s", o.raw)
	}
	b.config.Repository.Create, b.config.Repository.ID = false, strings.Repeat("1", len(id))
	if o := b.run(t, "list"); o.result.Kind != engine.KindInvalid {
		t.Errorf("two IDs: %s", o.raw)
	}
}

func TestAnEndpointIsAnAddress(t *testing.T) {
	b := newBench(t)
	b.write(t, "credentials/accessKeyID", "a")
	b.write(t, "credentials/secretAccessKey", "b")
	b.write(t, "credentials/region", "eu-1\n")
	tests := map[string]engine.S3{
		"https://s3.example.com":      {Endpoint: "s3.example.com"},
		"https://s3.example.com:9000": {Endpoint: "s3.example.com:9000"},
		"http://127.0.0.1:9000/\n":    {Endpoint: "127.0.0.1:9000", Plaintext: true},
		"s3.example.com":              {},
		"ftp://s3.example.com":        {},
		"https://s3.example.com/path": {},
		"https://user@s3.example.com": {},
		"https://":                    {},
	}
	for endpoint, want := range tests {
		t.Run(endpoint, func(t *testing.T) {
			b.write(t, "credentials/endpoint", endpoint)
			got, err := bucketOf(mover.S3{Bucket: "x", CredentialsFolder: b.path("credentials")})
			if want.Endpoint == "" {
				if err == nil {
					t.Errorf("got %+v", got)
				}
				return
			}
			want.Bucket, want.Region, want.AccessKeyID, want.SecretAccessKey, want.CA = "x", "eu-1", "a", "b", []byte{}
			if diff := cmp.Diff(&want, got); err != nil || diff != "" {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}
