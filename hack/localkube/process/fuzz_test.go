package process

import (
	"fmt"
	"strings"
	"testing"
)

// A program may call itself anything, even what looks like the rest of the line.
func FuzzParseStat(f *testing.F) {
	f.Add("etcd", "S", uint64(4711))
	f.Add("a) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 99", "Z", uint64(1))
	f.Add("\n)", "R", uint64(0))
	f.Fuzz(func(t *testing.T, name, state string, started uint64) {
		// The kernel writes one letter.
		if len(state) != 1 || state[0] < 'A' || state[0] > 'Z' {
			state = "S"
		}
		stat := fmt.Sprintf("7 (%s) %s 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 %d 20 21\n", name, state, started)
		got, zombie, err := parseStat([]byte(stat))
		if err != nil || got != started || zombie != (state == "Z" || state == "X") {
			t.Errorf("parseStat(%q) = %d, %t, %v", stat, got, zombie, err)
		}
		// A line that breaks off must give no start time: it would be that of another process.
		short := stat[:strings.LastIndexByte(stat, ')')+1]
		if _, _, err := parseStat([]byte(short)); err == nil {
			t.Errorf("parseStat(%q) finds a start time", short)
		}
	})
}
