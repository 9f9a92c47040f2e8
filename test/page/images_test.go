//go:build pagetest

package page

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
)

// TestImages takes the images of docs/monitor-page.md. They are written only where IMAGES names a folder.
func TestImages(t *testing.T) {
	folder := os.Getenv("IMAGES")
	m := emptyMonitor(t)
	m.fill()
	b := open(t, m, "#/overview")
	for _, image := range []struct {
		name, where, wait string
		width, height     int64
		dark              bool
		prepare           func()
	}{
		{name: "overview", where: "#/overview", wait: ".chart canvas", width: 1180, height: 1250},
		{name: "overview-dark", where: "#/overview", wait: ".chart canvas", width: 1180, height: 1250, dark: true},
		{name: "timeline", where: "#/timeline?since=1h", wait: ".change", width: 1180, height: 760, prepare: func() { b.click(".change:nth-child(2) summary") }},
		{name: "object-narrow", where: toObject(webapps, "shop", "checkout"), wait: ".yaml", width: 400, height: 800},
		{name: "comparison", where: toObject(webapps, "shop", "checkout"), wait: ".yaml", width: 1180, height: 700, prepare: func() {
			b.click(".change:nth-child(2) .compare")
			b.see(".sides")
		}},
		{name: "tree", where: toObject(databases, "shop", "orders"), wait: ".tree", width: 1180, height: 620},
		{name: "kind", where: "#/kind?name=databases.data.example.com", wait: ".findings", width: 1180, height: 1000},
	} {
		b.size(image.width, image.height)
		b.dark(image.dark)
		b.show(image.where)
		b.see(image.wait)
		if image.prepare != nil {
			image.prepare()
		}
		picture, err := chromedp.Run(b.context, chromedp.CaptureScreenshot())
		if err != nil {
			t.Fatal(err)
		}
		if len(picture) < 5000 {
			t.Errorf("%s: the image has %d bytes", image.name, len(picture))
		}
		if folder == "" {
			continue
		}
		if err := os.WriteFile(filepath.Join(folder, "monitor-"+image.name+".png"), picture, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
