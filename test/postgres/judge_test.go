//go:build postgres

package postgres

import (
	"errors"
	"fmt"
	"strings"
)

// ledger is what the accounts of a database come to, at one moment. Every transaction of the clients adds the same amount to
// an account, a teller and a branch, and writes it into the history: whatever moment it is, the four sums are equal.
type ledger struct {
	rows, accounts, tellers, branches, history int64
	// of is how many accounts there are.
	of int64
}

// query answers from one snapshot of the database, because it is one statement.
const query = `select
  (select count(*) from pgbench_history), (select sum(abalance) from pgbench_accounts), (select sum(tbalance) from pgbench_tellers),
  (select sum(bbalance) from pgbench_branches), (select coalesce(sum(delta), 0) from pgbench_history), (select count(*) from pgbench_accounts)`

// psql is the script that runs a statement, which has no single quote in it.
func psql(statement string) string {
	return "psql -XAtq -F' ' -v ON_ERROR_STOP=1 -c '" + statement + "' " + ledgers
}

// ledger reads it, as a client: what it counts is committed.
func (f *fixture) ledger(pod string) (l ledger, err error) {
	output, err := f.try(pod, psql(query))
	if err != nil {
		return l, fmt.Errorf("read the ledger in pod %s: %w: %s", pod, err, output)
	}
	if _, err := fmt.Sscan(output, &l.rows, &l.accounts, &l.tellers, &l.branches, &l.history, &l.of); err != nil {
		return l, fmt.Errorf("the ledger in pod %s is %q: %w", pod, output, err)
	}
	return l, nil
}

// addsUp tells what is wrong with a ledger whose history has to have from so many entries up to so many.
func (l ledger) addsUp(from, to int64) error {
	var wrong []error
	if l.accounts != l.history || l.tellers != l.history || l.branches != l.history {
		wrong = append(wrong, fmt.Errorf("the balances do not add up: %d of the accounts, %d of the tellers, %d of the branches, and the history says %d",
			l.accounts, l.tellers, l.branches, l.history))
	}
	if l.rows < from || l.rows > to {
		wrong = append(wrong, fmt.Errorf("the history has %d entries: %d were committed before the copy was begun, and %d when it was done", l.rows, from, to))
	}
	if want := int64(scale * 100_000); l.of != want {
		wrong = append(wrong, fmt.Errorf("there are %d accounts, want %d", l.of, want))
	}
	return errors.Join(wrong...)
}

// judge tells what is wrong with the database of a server, whose history has to have from so many entries up to so many:
// every page and every index is read, and the balances are added.
func (f *fixture) judge(pod string, from, to int64) error {
	var wrong []error
	// --install-missing adds the functions that look at indexes. Without notices it says nothing where all is well.
	if output, err := f.try(pod, "PGOPTIONS='-c client_min_messages=warning' pg_amcheck --install-missing --heapallindexed --rootdescend --all"); err != nil || output != "" {
		wrong = append(wrong, fmt.Errorf("pg_amcheck: %v: %s", err, shortened(output))) //nolint:errorlint // it may be nil
	}
	l, err := f.ledger(pod)
	if err == nil {
		err = l.addsUp(from, to)
	}
	return errors.Join(append(wrong, err)...)
}

// whole fails the test unless the database of a server is whole.
func (f *fixture) whole(pod string, from, to int64) {
	f.Helper()
	if to <= from {
		f.Errorf("%d entries before, and %d after: no client wrote meanwhile, so the test proves nothing", from, to)
	}
	if err := f.judge(pod, from, to); err != nil {
		said, _ := f.RunKubectl(f.Context(), "logs", pod, "--tail=30")
		f.Errorf("what was restored is not whole: %v\nThe server says:\n%s", err, said)
		return
	}
	l, err := f.ledger(pod)
	f.Measured("restored: %d entries of the history, from %d to %d were allowed (%v); pg_amcheck is clean, balances add up to %d", l.rows, from, to, err, l.history)
}

func shortened(text string) string {
	lines := strings.Split(text, "\n")
	return strings.Join(lines[:min(5, len(lines))], "\n")
}
