package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-dev/slipway/internal/mover"
	"github.com/slipway-dev/slipway/internal/repository"
)

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// taken is a snapshot that took a minute, so many hours before noon.
func taken(id, volume string, hours int, verified bool) repository.Snapshot {
	s := repository.Snapshot{ID: id, Volume: volume, Start: noon.Add(-time.Duration(hours) * time.Hour)}
	s.End = s.Start.Add(time.Minute)
	if verified {
		s.Verified = &repository.Verification{Time: s.End}
	}
	return s
}

func TestTheNewestVerifiedSnapshotIsRestored(t *testing.T) {
	one := []repository.Snapshot{taken("old", "", 48, true), taken("good", "", 24, true), taken("new", "", 1, false)}
	two := []repository.Snapshot{taken("a", "data-0", 3, true), taken("b", "data-1", 2, true), taken("c", "data-0", 1, true)}
	tests := map[string]struct {
		all  []repository.Snapshot
		ask  mover.Restore
		want string
		kind repository.Kind
	}{
		"the newest is not verified":               {one, mover.Restore{}, "good", ""},
		"as of the end of one":                     {one, mover.Restore{AsOf: noon.Add(-24*time.Hour + time.Minute)}, "good", ""},
		"as of a moment in which one was made":     {one, mover.Restore{AsOf: noon.Add(-24*time.Hour + time.Second)}, "old", ""},
		"as of a time before all":                  {one, mover.Restore{AsOf: noon.Add(-49 * time.Hour)}, "", repository.KindNotFound},
		"none is verified":                         {one[2:], mover.Restore{}, "", repository.KindNotFound},
		"there is none":                            {nil, mover.Restore{}, "", repository.KindNotFound},
		"several volumes and none is named":        {two, mover.Restore{}, "", repository.KindInvalid},
		"one of several volumes":                   {two, mover.Restore{Volume: "data-0"}, "c", ""},
		"one of several volumes, as of a time":     {two, mover.Restore{Volume: "data-0", AsOf: noon.Add(-2 * time.Hour)}, "a", ""},
		"a volume that the repository has nothing": {two, mover.Restore{Volume: "data-2"}, "", repository.KindNotFound},
		"the latest and one by its ID":             {one, mover.Restore{Snapshot: "old"}, "", repository.KindInvalid},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := latest(tc.all, tc.ask)
			if got != tc.want || (tc.kind == "") != (err == nil) || (err != nil && repository.KindOf(err) != tc.kind) {
				t.Errorf("got %q, %v, want %q, %s", got, err, tc.want, tc.kind)
			}
		})
	}
}

func TestWhatExpires(t *testing.T) {
	var month []repository.Snapshot
	for day := range 30 {
		month = append(month, taken(fmt.Sprintf("%02d", day), "", day*24, true))
	}
	bad := slices.Clone(month)
	for i := range 10 {
		bad[i].Verified = nil
	}
	tests := map[string]struct {
		all   []repository.Snapshot
		rules mover.Retention
		want  []string
		kind  repository.Kind
	}{
		"a period":                          {month, mover.Retention{Within: "26d", Limit: 10}, []string{"27", "28", "29"}, ""},
		"a count":                           {month, mover.Retention{Last: 28, Limit: 10}, []string{"28", "29"}, ""},
		"too many at once":                  {month, mover.Retention{Last: 3, Limit: 10}, nil, repository.KindMassDeletion},
		"too many at once, confirmed":       {month[:5], mover.Retention{Last: 3, Limit: 1, Confirmed: true}, []string{"03", "04"}, ""},
		"only verified ones count":          {bad, mover.Retention{Last: 19, Limit: 10}, []string{"29"}, ""},
		"each volume for itself":            {append([]repository.Snapshot{taken("other", "data-1", 999, true)}, month[:3]...), mover.Retention{Last: 2, Limit: 1}, []string{"02"}, ""},
		"no rule":                           {month, mover.Retention{Limit: 100}, nil, repository.KindInvalid},
		"a period that nobody understands":  {month, mover.Retention{Within: "5m"}, nil, repository.KindInvalid},
		"a time zone that there is nowhere": {month, mover.Retention{Last: 1, TimeZone: "Moon/Crater"}, nil, repository.KindInvalid},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := planned(tc.all, tc.rules, noon)
			slices.Sort(got)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if (tc.kind == "") != (err == nil) || (err != nil && repository.KindOf(err) != tc.kind) {
				t.Errorf("got %v, want %s", err, tc.kind)
			}
		})
	}
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
	if o := b.run(t, "snapshot"); o.result.Kind != repository.KindWrongRepository {
		t.Errorf("another ID: %s", o.raw)
	}
	b.write(t, "secret/repositoryID", id)
	b.config.Repository.Filesystem.Path = b.path("repository/team/empty")
	if o := b.run(t, "snapshot"); o.result.Kind != repository.KindNotFound {
		t.Errorf("an empty place: %s", o.raw)
	}
	b.config.Repository.Create, b.config.Repository.ID = false, strings.Repeat("1", len(id))
	if o := b.run(t, "list"); o.result.Kind != repository.KindInvalid {
		t.Errorf("two IDs: %s", o.raw)
	}
}

func TestAnEndpointIsAnAddress(t *testing.T) {
	b := newBench(t)
	b.write(t, "credentials/accessKeyID", "a")
	b.write(t, "credentials/secretAccessKey", "b")
	b.write(t, "credentials/region", "eu-1\n")
	tests := map[string]repository.S3{
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
