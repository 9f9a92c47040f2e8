package table

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// hostileParts are the parts of paths that have many readings.
var hostileParts = []string{
	"/", "//", "/a", "//a", "a", ";", ";a", `\`, "..", "/.", "/..", "/../", "/..;/", "%2e", "%252e", "%2F", "%252f", "%25252f", "%5c", "%255c",
	"%3b", "%25", "%3F", "%23", "%2500", "%c0%af", "\xc0\xaf",
}

// hostilePath repeats some parts up to a length, or puts them before or after harmless
// text.
func hostilePath(random *rand.Rand, length int) string {
	unit := "/"
	for range 1 + random.IntN(8) {
		unit += hostileParts[random.IntN(len(hostileParts))]
	}
	switch random.IntN(4) {
	case 0:
		return unit + strings.Repeat("a", length-len(unit))
	case 1:
		return "/" + strings.Repeat("a", length-len(unit)-1) + unit
	default:
		return strings.Repeat(unit, length/len(unit))
	}
}

// Each reading is processed once, in a fixed number of steps that look at each of its
// bytes. So the number of readings and of their bytes measures the work.
func TestAPathCostsBoundedWork(t *testing.T) {
	random := rand.New(rand.NewPCG(11, 13))
	most, mostBytes, refused := 0, 0, 0
	for range 1200 {
		path, err := ParsePath(hostilePath(random, []int{60, 1200, 8 << 10, 60 << 10}[random.IntN(4)]))
		if err != nil {
			continue
		}
		asked, askedBytes, last := 0, 0, ""
		query := (&listener{queryNames: []map[string]bool{nil, {"m": true}}[random.IntN(2)]}).receiveQuery(strings.Repeat("m=1&n=2&", random.IntN(200)))
		set := newReadings(query, path.received, path.Forward)
		if !set.allHold(func(path, query string) bool {
			if path != last { // each path is checked with up to four queries
				askedBytes += len(path)
			}
			asked, askedBytes, last = asked+1, askedBytes+len(query), path
			return true
		}) {
			refused++
		}
		kept := 0
		for _, r := range set.all {
			kept += len(r.path) + len(r.query)
		}
		if asked > 4*len(set.all) || askedBytes > set.bytes || kept > set.bytes {
			t.Fatalf("%.80q: %d readings are kept, %d bytes, counted as %d; asked about %d, %d bytes", path.received, len(set.all), kept, set.bytes, asked, askedBytes)
		}
		most, mostBytes = max(most, len(set.all)), max(mostBytes, set.bytes)
	}
	if most > 128 || mostBytes > 64<<10 {
		t.Errorf("a path has %d readings, and one has readings of %d bytes", most, mostBytes)
	}
	if most < 100 || mostBytes < 60<<10 || refused < 300 {
		t.Errorf("at most %d readings and %d bytes, %d refused: this shows too little", most, mostBytes, refused)
	}
}

func TestAnOrdinaryPathHasFewReadings(t *testing.T) {
	segments := func(segment string, length int) string { return strings.Repeat(segment, length/len(segment)) }
	for name, path := range map[string]string{
		"an escaped slash":                       "/a%2Fb",
		"30 escaped slashes":                     "/files" + strings.Repeat("%2Fa", 30),
		"30 slashes, escaped twice":              "/files" + strings.Repeat("%252Fa", 30),
		"empty segments":                         "//a//b///c//",
		"parameters":                             "/a;v=1/b;w=2/c;x=%C3%A4",
		"an address":                             "/proxy/https%3A%2F%2Fa.test%2Fb%3Fc%3Dd%26e%23f",
		"an address as it is":                    "/proxy/https://a.test/b/../c",
		"dots, parameters and an escaped slash":  "/a/./b/../c;v=1/d%2Fe/",
		"parameters, empty and an escaped slash": "/a;v=1//b%2Fc;w=2//d%20e",
		"a name of Windows":                      `/files/C:\a\b%5Cc.txt`,
		"a thousand segments with a space":       segments("/a%20b.c", 8<<10),
		"8 KiB of UTF-8":                         segments("/%E6%97%A5%E6%9C%AC", 8<<10),
		"8 KiB of raw UTF-8":                     segments("/\u65e5\u672c", 8<<10),
		"8 KiB with an escaped slash":            segments("/abcdefg", 8<<10) + "/a%2Fb",
		"2 KiB with all but dots":                segments("/abcdefg", 2<<10) + "//a%2Fb;v=1",
	} {
		parsed, err := ParsePath(path)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, names := range []map[string]bool{nil, {"n": true}} {
			query := (&listener{queryNames: names}).receiveQuery("m=1&n=2&next=%2Fa%3Fb")
			set := newReadings(query, parsed.received, parsed.Forward)
			if !set.allHold(func(_, _ string) bool { return true }) {
				t.Errorf("%s is refused, at %d readings of %d bytes", name, len(set.all), set.bytes)
			}
		}
	}
}

// BenchmarkReadings reads the most expensive paths.
func BenchmarkReadings(b *testing.B) {
	for name, length := range map[string]int{"1200B": 1200, "8KiB": 8 << 10} {
		random := rand.New(rand.NewPCG(17, 19))
		var worst Path
		most := 0
		for range 2000 {
			path, err := ParsePath(hostilePath(random, length))
			if err != nil {
				continue
			}
			set := newReadings(nil, path.received, path.Forward)
			set.allHold(func(_, _ string) bool { return true })
			if work := len(set.all)<<10 + set.bytes; work > most {
				worst, most = path, work
			}
		}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				everyReading(func(string) bool { return true }, worst.received, worst.Forward)
			}
		})
	}
}
