package main

import (
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-dev/slipway/internal/backup/engine"
	"github.com/slipway-dev/slipway/internal/backup/mover"
)

// Several Backups may share a password. Each has the ID of its repository in a file of its own.
func TestWhichRepositoryIsExpected(t *testing.T) {
	own := mover.Repository{IDFile: mover.IDFile("shop")}
	of := func(id string, old bool) mover.Repository {
		c := own
		c.ID, c.OldID = id, old
		return c
	}
	tests := map[string]struct {
		files   map[string]string
		config  mover.Repository
		want    string
		refused bool
	}{
		"none is known":                           {nil, own, "", false},
		"by the configuration":                    {nil, of("this", false), "this", false},
		"by its file":                             {map[string]string{"repositoryID.shop": "this\n"}, own, "this", false},
		"by both":                                 {map[string]string{"repositoryID.shop": "this"}, of("this", false), "this", false},
		"by both, and they differ":                {map[string]string{"repositoryID.shop": "that"}, of("this", false), "", true},
		"another Backup has the password, too":    {map[string]string{"repositoryID.mart": "that"}, own, "", false},
		"another Backup, of an older release":     {map[string]string{"repositoryID": "that"}, own, "", false},
		"another one's file beside the ID":        {map[string]string{"repositoryID": "that"}, of("this", false), "this", false},
		"its own file, of an older release":       {map[string]string{"repositoryID": "this"}, of("", true), "this", false},
		"an older file that differs from the new": {map[string]string{"repositoryID": "that", "repositoryID.shop": "this"}, of("", true), "this", false},
		"an older file that differs from the ID":  {map[string]string{"repositoryID": "that"}, of("this", true), "", true},
		"by hand, with the file of always":        {map[string]string{"repositoryID": "this"}, mover.Repository{}, "this", false},
		"a file that leads elsewhere":             {nil, mover.Repository{IDFile: "../password"}, "", true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			for file, text := range tc.files {
				b.write(t, "secret/"+file, text)
			}
			config := b.config.Repository
			config.ID, config.IDFile, config.OldID = tc.config.ID, tc.config.IDFile, tc.config.OldID
			options, err := optionsOf(config)
			if (err != nil) != tc.refused || (err == nil && options.ExpectedID != tc.want) {
				t.Errorf("expected is %q, %v, want %q", options.ExpectedID, err, tc.want)
			}
		})
	}
}

// A run that was killed may have made a repository, and nobody has its ID.
func TestARepositoryIsDeletedThoughNobodyKnowsItsID(t *testing.T) {
	b := newBench(t)
	b.write(t, "source/a", "x")
	b.config.Snapshot.Run, b.config.Repository.Create = "1", true
	made := b.must(t, "snapshot")
	b.config.Repository.Create = false
	b.write(t, "secret/password", "another")
	if o := b.run(t, "delete"); o.result.Kind != engine.KindWrongPassword {
		t.Errorf("with another password: %s", o.raw)
	}
	b.write(t, "secret/password", password+"\n")
	if got := b.must(t, "delete"); got.RepositoryID != made.RepositoryID || got.Delete == nil || got.Delete.Deleted == 0 {
		t.Errorf("got %+v", got)
	}
	if o := b.run(t, "delete"); o.result.Kind != engine.KindNotFound {
		t.Errorf("a second time: %s", o.raw)
	}
}

// A repository that is older than who asks, or that holds an older copy, is that of somebody else.
func TestAnOlderRepositoryIsNotDeleted(t *testing.T) {
	before := func(at time.Time) time.Time { return at.Add(-time.Hour) }
	after := func(at time.Time) time.Time { return at.Add(time.Hour) }
	tests := map[string]struct {
		since  func(time.Time) time.Time
		pinned bool
		age    time.Duration // of what tells that it is a repository
		kind   engine.Kind
	}{
		"it is older, and nobody knows its ID":       {after, false, 0, engine.KindWrongRepository},
		"it is older, and its ID is by the password": {after, true, 0, engine.KindWrongRepository},
		"it is a copy of one that is older":          {after, false, -2 * time.Hour, engine.KindWrongRepository},
		"it was made before its first copy":          {before, false, 2 * time.Hour, engine.KindWrongRepository},
		"it is younger":                              {before, false, 0, ""},
		"it is younger, and known":                   {before, true, 0, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.write(t, "source/a", "x")
			b.config.Snapshot.Run, b.config.Repository.Create = "1", true
			made := b.must(t, "snapshot")
			b.config.Repository.Create = false
			if tc.pinned {
				b.write(t, "secret/repositoryID", made.RepositoryID)
			}
			at := made.Snapshot.Start.Add(-tc.age)
			if err := os.Chtimes(b.path("repository/team/shop/kopia.repository.f"), at, at); err != nil {
				t.Fatal(err)
			}
			held := contents(t, b.path("repository"))
			b.config.Delete.MadeSince = tc.since(made.Snapshot.Start)
			if tc.kind == "" {
				b.must(t, "delete")
				return
			}
			b.wantKind(t, "delete", tc.kind)
			if diff := cmp.Diff(held, contents(t, b.path("repository"))); diff != "" {
				t.Errorf("(-before +after):\n%s", diff)
			}
		})
	}
}
