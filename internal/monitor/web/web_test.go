package web

import (
	"bytes"
	"compress/gzip"
	"io/fs"
	"regexp"
	"strings"
	"testing"
)

// budget is how many bytes a browser may have to load, compressed, before it shows something.
const budget = 60 << 10

func content(t *testing.T, name string) string {
	t.Helper()
	raw, err := fs.ReadFile(Files(), name)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func TestThePageIsSmall(t *testing.T) {
	all := 0
	for _, name := range []string{"index.html", "assets/page.js", "assets/page.css", "assets/icon.svg"} {
		into := &bytes.Buffer{}
		w := gzip.NewWriter(into)
		if _, err := w.Write([]byte(content(t, name))); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		all += into.Len()
	}
	if all > budget {
		t.Errorf("the page has %d bytes, compressed; %d are the limit", all, budget)
	}
	t.Logf("%d bytes, compressed", all)
}

// TestThePageNeedsNothingFromElsewhere: addresses in it are names of namespaces, which nobody loads.
func TestThePageNeedsNothingFromElsewhere(t *testing.T) {
	address := regexp.MustCompile(`(?i)\b(?:https?:)?//[a-z0-9.-]+\.[a-z]{2,}`)
	for _, name := range []string{"index.html", "assets/page.js", "assets/page.css", "assets/icon.svg"} {
		for _, found := range address.FindAllString(content(t, name), -1) {
			if found != "http://www.w3.org" {
				t.Errorf("%s names %s", name, found)
			}
		}
	}
	if css := content(t, "assets/page.css"); strings.Contains(css, "@import") || strings.Contains(css, "url(") {
		t.Error("the style loads something")
	}
}

// TestNothingIsInline: the policy of the server would refuse it.
func TestNothingIsInline(t *testing.T) {
	html := content(t, "index.html")
	inline := regexp.MustCompile(`(?i)<style|\sstyle=|\son[a-z]+=|javascript:|<script[^>]*>[^<]`)
	if found := inline.FindString(html); found != "" {
		t.Errorf("index.html has %q", found)
	}
	js := content(t, "assets/page.js")
	for _, way := range []string{"eval(", "new Function", "document.write", "insertAdjacentHTML", "outerHTML"} {
		if strings.Contains(js, way) {
			t.Errorf("the script has %q", way)
		}
	}
}
