package document_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-dev/slipway/internal/gateway/replica/document"
)

func TestADocumentIsReadAsItWasWritten(t *testing.T) {
	doc := document.Document{
		Protocol: document.Protocol, Version: "1", Revision: 7, UID: "gateway", Generation: 3,
		Rejected:  &document.Rejected{Generation: 4, Reason: "Invalid", Message: "spec.routes[0]: no"},
		Problems:  []document.Problem{{Route: 0, Name: "a", Field: "spec.routes[0]", Reason: "NoEndpoints", Message: "none"}},
		Routes:    []string{document.RouteDigest("a", 1), document.RouteDigest("b", 1)},
		Listeners: []document.ServedListener{{Name: strings.Repeat("n", 253) + "/" + strings.Repeat("s", 253) + "/http", Digest: document.ListenerDigest(80, false, "", nil)}},
		View:      &document.View{Since: time.Unix(1, 0).UTC(), Of: []string{"Services"}},
	}
	body, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	got, err := document.Read(body, doc.Size())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&doc, got); diff != "" {
		t.Errorf("(-written +read):\n%s", diff)
	}
}

func TestADocumentHoldsNoMoreThanThereCanBe(t *testing.T) {
	size := document.Size{Routes: 2, Listeners: 1, Objects: 1}
	long := strings.Repeat("x", 5000)
	for name, tc := range map[string]struct{ rest, want string }{
		"as much as there can be":           {`"routes":["a","b"],"listeners":[{"name":"a"}],"view":null,"problems":null`, ""},
		"fields of a later release":         {`"more":{"listeners":[1,2,3]}`, ""},
		"another route":                     {`"routes":["a","b","c"]`, "/revision is answered with more routes than there can be"},
		"another listener":                  {`"listeners":[{},{}]`, "/revision is answered with more listeners than there can be"},
		"many problems":                     {`"problems":[` + strings.Repeat(`{"reason":"A"},`, 8000) + `{"reason":"A"}]`, "/revision is answered with more problems than there can be"},
		"many bytes":                        {`"more":"` + strings.Repeat("x", 300<<10) + `"`, "/revision is answered with more than there can be"},
		"no list":                           {`"routes":{"a":"b"}`, "/revision is answered with something else than a document"},
		"no end":                            {`"routes":["a"`, "/revision is answered with something else than a document"},
		"no digest":                         {`"routes":["` + long + `"]`, "/revision is answered with digests that are none"},
		"no name":                           {`"listeners":[{"name":"` + long + `"}]`, "/revision is answered with digests that are none"},
		"no reason":                         {`"rejected":{"reason":"no reason"}`, "/revision is answered with reasons that are none"},
		"a long list, and then a short one": {`"listeners":[{},{}],"listeners":[]`, "/revision is answered with more listeners than there can be"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := document.Read(fmt.Appendf(nil, `{"protocol":1,%s}`, tc.rest), size)
			var unreadable *document.UnreadableError
			switch {
			case tc.want == "" && err != nil:
				t.Errorf("%v, want none", err)
			case tc.want != "" && (!errors.As(err, &unreadable) || unreadable.Message != tc.want):
				t.Errorf("%v, want %s", err, tc.want)
			}
		})
	}
}

// What it takes to read a document, and what stays of it, depends on what there is to serve.
func TestWhatIsReadIsBounded(t *testing.T) {
	size := document.Size{Routes: 10, Listeners: 10, Objects: 10}
	long := strings.Repeat("x", 5000)
	body := fmt.Appendf(nil, `{"protocol":1,"version":"%[1]s","uid":"%[1]s","problems":[{"name":"%[1]s","field":"%[1]s","reason":"A","message":"%[1]s"}],
		"rejected":{"reason":"A","message":"%[1]s"},"view":{"of":["%[1]s"%[2]s]}}`, long, strings.Repeat(`,"a"`, 20_000))
	doc, err := document.Read(body, size)
	if err != nil {
		t.Fatal(err)
	}
	for name, got := range map[string]int{
		"version": len(doc.Version), "uid": len(doc.UID), "name": len(doc.Problems[0].Name), "field": len(doc.Problems[0].Field),
		"message": len(doc.Problems[0].Message), "rejected": len(doc.Rejected.Message), "view": len(doc.View.Of[0]),
	} {
		if got > 1<<10 {
			t.Errorf("%s has %d bytes", name, got)
		}
	}
	if len(doc.View.Of) > 64 {
		t.Errorf("%d kinds are not heard of", len(doc.View.Of))
	}
	if got := (document.Size{Routes: 1 << 40, Listeners: 1 << 40, Objects: 1 << 40}).Bytes(); got > 2<<20 {
		t.Errorf("a document may have %d bytes", got)
	}
}

// What the documents of a namespace may take is counted by Memory. So it must be what they take, whatever is in them.
func TestTheMemoryOfADocumentIsWhatItTakes(t *testing.T) {
	size := document.Size{Routes: 10_000, Listeners: 2000, Objects: 100}
	list := func(n int, one func(i int) string) string {
		parts := make([]string, n)
		for i := range parts {
			parts[i] = one(i)
		}
		return "[" + strings.Join(parts, ",") + "]"
	}
	long := strings.Repeat("x", 500)
	for name, fields := range map[string]string{
		"nothing":   `"generation":1`,
		"routes":    `"routes":` + list(10_000, func(i int) string { return fmt.Sprintf(`"%012d"`, i) }),
		"listeners": `"listeners":` + list(2000, func(i int) string { return fmt.Sprintf(`{"name":"namespace/set-%d/http","digest":"%012d"}`, i, i) }),
		"problems": `"problems":` + list(2000, func(i int) string {
			return fmt.Sprintf(`{"route":%d,"name":"route-%d","field":"spec.routes[%d].path","reason":"NoEndpoints","message":"Service has none"}`, i, i, i)
		}),
		"problems in short": `"problems":` + list(5000, func(int) string { return `{"reason":"A"}` }),
		"long problems": `"problems":` + list(100, func(int) string {
			return fmt.Sprintf(`{"name":"%[1]s","field":"%[1]s","reason":"A","message":"%[1]s"}`, long)
		}),
		"what is not heard": `"view":{"current":false,"of":` + list(64, func(int) string { return `"` + long + `"` }) + `}`,
		"many kinds":        `"view":{"current":false,"of":` + list(10_000, func(int) string { return `"a"` }) + `}`,
		"single words":      fmt.Sprintf(`"version":"%[1]s","uid":"%[1]s","rejected":{"reason":"A","message":"%[1]s"}`, long),
	} {
		t.Run(name, func(t *testing.T) {
			body := []byte(`{"protocol":1,` + fields + `}`)
			documents := make([]*document.Document, 20)
			before := heap()
			for i := range documents {
				doc, err := document.Read(body, size)
				if err != nil {
					t.Fatal(err)
				}
				documents[i] = doc
			}
			taken, counted := int(heap()-before)/len(documents), documents[0].Memory()
			t.Logf("it takes %d bytes, %d are counted", taken, counted)
			const noise = 1000 // of what else there is
			if counted < taken*98/100-noise || counted > noise+taken*3/2 {
				t.Errorf("it takes %d bytes, and %d are counted", taken, counted)
			}
			runtime.KeepAlive(documents)
			runtime.KeepAlive(body)
		})
	}
}

// heap is how many bytes are used.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}
