package supervisor

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

// values reads all values of a text.
func values(from io.Reader, limit int) (all []string, err error) {
	s := newStream(from)
	for {
		value, cut, err := s.value(limit)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return all, err
		}
		if cut {
			all = append(all, "cut "+string(value))
			continue
		}
		all = append(all, string(value))
	}
}

func TestValuesAreCutOutOfAStream(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		want []string
		err  error
	}{
		"lines":               {"{\"a\":1}\n{}\n", []string{`{"a":1}`, "{}"}, nil},
		"without anything":    {"", nil, nil},
		"brackets in a text":  {`{"a":"}]\"}"}{"b":[1,{}]}`, []string{`{"a":"}]\"}"}`, `{"b":[1,{}]}`}, nil},
		"a backslash at last": {`{"a":"\\"}{}`, []string{`{"a":"\\"}`, "{}"}, nil},
		"ends within":         {`{} {"a":`, []string{"{}"}, io.ErrUnexpectedEOF},
		"ends within a text":  {`"a`, nil, io.ErrUnexpectedEOF},
		"too long":            {`{"a":"123456789012345678901234567890"}{"b":2}`, []string{`cut {"a":"12345678901234`, `{"b":2}`}, nil},
		"no value":            {`}`, nil, errGarbage},
	} {
		t.Run(name, func(t *testing.T) {
			for _, from := range []io.Reader{strings.NewReader(test.text), iotest.OneByteReader(strings.NewReader(test.text)), iotest.DataErrReader(strings.NewReader(test.text))} {
				got, err := values(from, 20)
				if diff := cmp.Diff(test.want, got); diff != "" || !errors.Is(err, test.err) {
					t.Errorf("%v, want %v\n%s", err, test.err, diff)
				}
			}
		})
	}
}

func TestALargeValueDoesNotStayInMemory(t *testing.T) {
	large := `{"a":"` + strings.Repeat("x", 1<<20) + `"}`
	s := newStream(strings.NewReader(large + "{}" + large + "{}{}"))
	for range 5 {
		if _, _, err := s.value(4 << 20); err != nil {
			t.Fatal(err)
		}
	}
	if len(s.buffer) > keptBuffer {
		t.Errorf("%d bytes are kept", len(s.buffer))
	}
	s = newStream(strings.NewReader(large + "{}"))
	if _, cut, err := s.value(1000); err != nil || !cut || len(s.buffer) > keptBuffer {
		t.Errorf("cut %v, %v, %d bytes are used", cut, err, len(s.buffer))
	}
}

func TestAPageIsReadWhateverTheOrderOfItsMembers(t *testing.T) {
	const meta = `"metadata":{"resourceVersion":"7","continue":"next","remainingItemCount":3}`
	for name, test := range map[string]struct {
		text  string
		items []string
		fails bool
	}{
		"items first":            {text: `{"apiVersion":"v1","items":[{"a":1},{"b":"]"}],"kind":"List",` + meta + `}`, items: []string{`{"a":1}`, `{"b":"]"}`}},
		"metadata first":         {text: `{ "kind":"List", ` + meta + `, "items" : [ {"a":1} , {"b":2} ] }`, items: []string{`{"a":1}`, `{"b":2}`}},
		"no items":               {text: `{"items":[],` + meta + `}`},
		"null":                   {text: `{"items":null,` + meta + `}`},
		"items missing":          {text: `{` + meta + `}`},
		"metadata missing":       {text: `{"items":[]}`, fails: true},
		"no resource version":    {text: `{"items":[],"metadata":{}}`, fails: true},
		"items twice":            {text: `{"items":[{"a":1}],"items":[],` + meta + `}`, items: []string{`{"a":1}`}, fails: true},
		"a text among the items": {text: `{"items":["a"],` + meta + `}`, fails: true},
		"cut off":                {text: `{"items":[{"a":1}`, items: []string{`{"a":1}`}, fails: true},
		"cut off at the end":     {text: `{"items":[{"a":1}],` + meta, items: []string{`{"a":1}`}, fails: true},
		"not a list":             {text: `[]`, fails: true},
		"words":                  {text: `the server is down`, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			var items []string
			end, err := readPage(strings.NewReader(test.text), 1000, func(raw []byte, _ bool) error {
				items = append(items, string(raw))
				return nil
			})
			if diff := cmp.Diff(test.items, items); diff != "" || (err != nil) != test.fails {
				t.Errorf("error %v\n%s", err, diff)
			}
			if err == nil && (end != listEnd{ResourceVersion: "7", Continue: "next"}) {
				t.Errorf("%+v", end)
			}
			if err != nil && !errors.Is(err, errGarbage) && !isCut(err) {
				t.Errorf("an error of another kind: %v", err)
			}
		})
	}
}

const namedWidget = `"metadata":{"annotations":{"name":"no"},"labels":{"uid":"no"},"name":"a","namespace":"n","ownerReferences":[{"name":"no","uid":"no"}],"resourceVersion":"5","uid":"u"}`

func TestAnObjectIsKnownByItsMetadataAlone(t *testing.T) {
	raw := `{"apiVersion":"example.com/v1","kind":"Widget","Metadata":{"name":"other","uid":"other"},` + namedWidget + `,"METADATA":{"name":"other"}}`
	got, err := readObject(widget("v1", "a"), []byte(raw), false)
	want := Object{Namespace: "n", Name: "a", UID: "u", ResourceVersion: "5", Raw: []byte(raw)}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
}

func TestALargeObjectIsKnownByItsBegin(t *testing.T) {
	kind := widget("v1", "a")
	object := `{"apiVersion":"example.com/v1","kind":"Widget",` + namedWidget + `,"spec":{"metadata":{"name":"no"},"name":"no","large":"xxxxxxxx`
	want := Object{
		Namespace: "n", Name: "a", UID: "u", ResourceVersion: "5", Oversized: true,
		Raw: []byte(`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a","namespace":"n","uid":"u","resourceVersion":"5"}}`),
	}
	got, err := readObject(kind, []byte(object), true)
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	said, got, err := readFrame(kind, []byte(`{"type":"MODIFIED","object":`+object), true)
	if diff := cmp.Diff(want, got); diff != "" || err != nil || said != "MODIFIED" {
		t.Errorf("%s %v\n%s", said, err, diff)
	}
	for name, begin := range map[string]string{
		"no metadata": `{"apiVersion":"example.com/v1","data":"xxxxxx`,
		"half a name": `{"apiVersion":"example.com/v1","metadata":{"name":"a","namespace":"n","resourceVersion":"5","uid":"u`,
		"a list":      `[[[`,
		"nothing":     ``,
	} {
		if got, err := readObject(kind, []byte(begin), true); !errors.Is(err, errUnknown) {
			t.Errorf("%s: %+v %v", name, got, err)
		}
	}
}

// FuzzStream finds values as the decoder of the standard library does, whatever pieces they come in.
func FuzzStream(f *testing.F) {
	f.Add([]byte(`{"a":"}"} {"b":[1,"\\"]}`), uint64(1))
	f.Add([]byte(`{"type":"ADDED","object":{}}`+"\n"+`{`), uint64(2))
	f.Add([]byte(`[1,2] "x" {"":null}`), uint64(3))
	f.Fuzz(func(t *testing.T, text []byte, seed uint64) {
		decoder := json.NewDecoder(bytes.NewReader(text))
		s := newStream(&pieces{text: text, rand: rand.New(rand.NewPCG(seed, 0))})
		for {
			var want json.RawMessage
			if decoder.Decode(&want) != nil {
				break // what is no JSON is found by who uses a value
			}
			if !strings.ContainsAny(string(want[:1]), `{["`) {
				break // a word ends at a delimiter, which a text alone does not have
			}
			got, cut, err := s.value(1 << 20)
			if err != nil || cut || !bytes.Equal(got, want) {
				t.Fatalf("%q %v %v, want %q", got, cut, err, want)
			}
		}
		for range len(text) + 1 {
			if _, _, err := s.value(10); err != nil {
				return
			}
		}
		t.Fatal("a stream without an end")
	})
}

// pieces reads a text in pieces of any size.
type pieces struct {
	text []byte
	rand *rand.Rand
}

func (p *pieces) Read(into []byte) (int, error) {
	if len(p.text) == 0 {
		return 0, io.EOF
	}
	n := copy(into[:min(len(into), 1+p.rand.IntN(9))], p.text)
	p.text = p.text[n:]
	return n, nil
}

// FuzzFrame never takes the words of an object for its identity, and gives nothing away that is no JSON.
func FuzzFrame(f *testing.F) {
	f.Add([]byte(`{"type":"ADDED","object":{"apiVersion":"example.com/v1",`+namedWidget+`}}`), 40)
	f.Add([]byte(`{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"9"}}}`), 10)
	f.Add([]byte(`{"type":"ERROR","object":{"code":410}}`), 10)
	f.Fuzz(func(t *testing.T, raw []byte, limit int) {
		kind := widget("v1", "a")
		said, object, err := readFrame(kind, raw, false)
		if err == nil && said != bookmark {
			var whole struct{ Object map[string]any }
			if err := json.Unmarshal(raw, &whole); err != nil {
				t.Fatalf("no JSON, and taken: %q", raw)
			}
			again, err := readObject(kind, object.Raw, false)
			if diff := cmp.Diff(object, again); diff != "" || err != nil {
				t.Fatalf("%v %s", err, diff)
			}
		}
		if limit <= 0 || limit > len(raw) || err != nil {
			return
		}
		if saidOfBegin, begin, errOfBegin := readFrame(kind, raw[:limit], true); errOfBegin == nil {
			got, want := fmt.Sprint(saidOfBegin, begin.Name, begin.UID, begin.ResourceVersion), fmt.Sprint(said, object.Name, object.UID, object.ResourceVersion)
			if got != want && !strings.Contains(string(raw), `\u`) && !doubled(raw) {
				t.Fatalf("the begin says %s, the whole %s: %q", got, want, raw)
			}
		}
	})
}

// doubled reports whether a member may be there twice: then the last one counts, which the begin does not have.
func doubled(raw []byte) bool {
	for _, name := range []string{`"metadata"`, `"name"`, `"uid"`, `"resourceVersion"`, `"object"`, `"type"`, `"namespace"`, `"apiVersion"`, `"kind"`} {
		if bytes.Count(raw, []byte(name)) > 1 {
			return true
		}
	}
	return false
}
