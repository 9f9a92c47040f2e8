//go:build postgres

package postgres

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// What finds nothing wrong has to be able to. Each of these is planted into a database that is whole, and found.
func TestTheJudgeFindsWhatIsPlanted(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.Claim("planted", "", claimSize)
	f.fresh("planted", "planted", dataFolder)
	f.sh("planted", fmt.Sprintf("createdb %[1]s && pgbench --initialize --quiet --scale=%[2]d %[1]s && pgbench -n -t 200 %[1]s", ledgers, scale))
	const rows = 200
	if err := f.judge("planted", rows, rows); err != nil {
		t.Fatalf("before anything is planted: %v", err)
	}
	sql := func(statement string) { f.sh("planted", psql(statement)) }
	for _, tc := range []struct{ name, plant, undo, says string }{
		{
			"an amount that only the tellers have", "update pgbench_tellers set tbalance = tbalance + 1 where tid = 1",
			"update pgbench_tellers set tbalance = tbalance - 1 where tid = 1", "do not add up",
		},
		{
			"an entry that is missing in the history", "create table lost as select ctid as at, * from pgbench_history limit 1; delete from pgbench_history where ctid = (select at from lost)",
			"insert into pgbench_history select tid, bid, aid, delta, mtime, filler from lost; drop table lost", "the history has 199 entries",
		},
		{
			"an account that is missing", "create table lost as select * from pgbench_accounts where abalance = 0 limit 1; delete from pgbench_accounts where aid = (select aid from lost)",
			"insert into pgbench_accounts select * from lost; drop table lost", "199999 accounts",
		},
	} {
		sql(tc.plant)
		if err := f.judge("planted", rows, rows); err == nil || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: the judge says %v, want %q", tc.name, err, tc.says)
		}
		sql(tc.undo)
		if err := f.judge("planted", rows, rows); err != nil {
			t.Fatalf("%s, undone: %v", tc.name, err)
		}
	}
	for _, from := range []int64{rows - 1, rows + 1} {
		if err := f.judge("planted", from, from); err == nil {
			t.Errorf("%d entries are taken for %d", rows, from)
		}
	}
	f.plantBadPage()
	if err := f.judge("planted", rows, rows); err == nil || !strings.Contains(err.Error(), "pg_amcheck") {
		t.Errorf("a page of an index that is damaged: the judge says %v", err)
	}
}

// plantBadPage changes a byte of an index on disk, and lets the server begin anew, which would answer from memory.
func (f *fixture) plantBadPage() {
	f.Helper()
	path := f.sh("planted", fmt.Sprintf(`psql -XAtq -c "checkpoint" -c "select pg_relation_filepath('pgbench_accounts_pkey')" %s`, ledgers))
	f.sh("planted", fmt.Sprintf("printf X | dd of=%s/%s bs=1 seek=20000 conv=notrunc status=none && sync", dataFolder, path))
	// It ends the server, and with it the container, in which this is said.
	_, _ = f.try("planted", "pg_ctl stop -m fast -W")
	f.Eventually(func() error {
		p := &corev1.Pod{}
		if err := f.Get("planted", p); err != nil {
			return err
		}
		if c := p.Status.ContainerStatuses; len(c) != 1 || c[0].RestartCount == 0 {
			return errors.New("the server has not begun anew")
		}
		return f.serves("planted")
	})
}
