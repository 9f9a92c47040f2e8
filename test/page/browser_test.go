//go:build pagetest

package page

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// patience is how long a page may take to show something. The machine may be busy.
const patience = 20 * time.Second

// browser is the one that all tests use. Each has a profile of its own in it.
var browser context.Context

func TestMain(m *testing.M) {
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(os.Getenv("CHROMIUM")), chromedp.NoSandbox,
		chromedp.Flag("lang", "en-GB"))
	allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
	var end context.CancelFunc
	browser, end = chromedp.NewContext(allocator)
	code := 1
	if err := chromedp.Do(browser); err != nil {
		fmt.Fprintln(os.Stderr, "the browser does not start (CHROMIUM names its program):", err)
	} else {
		code = m.Run()
	}
	end()
	stop()
	os.Exit(code)
}

// tab is a tab of the browser that shows a page of a monitor.
type tab struct {
	*testing.T
	context context.Context
	monitor *monitor

	mutex    sync.Mutex
	troubles []string
}

// watchPolicy runs before the page does, and keeps what the Content-Security-Policy refused.
const watchPolicy = `window.refused = []; addEventListener('securitypolicyviolation', (e) => window.refused.push(e.violatedDirective + ' ' + e.blockedURI + ' ' + e.sample));`

// open opens a page, after logging in. At its end the test fails if a script of somebody else ran, the policy was broken, or
// something was logged as an error.
func open(t *testing.T, m *monitor, where string) *tab {
	t.Helper()
	b := newTab(t, m)
	b.run(chromedp.Navigate(m.url))
	b.login(token)
	b.see(`.user`)
	b.show(where)
	return b
}

func (b *tab) login(with string) {
	b.Helper()
	b.see(`form.login`)
	// The page puts the focus on its title first.
	b.until("the form has the focus", `document.activeElement.matches('h1, #token')`)
	b.focus(`#token`)
	b.press(with + kb.Enter)
}

func newTab(t *testing.T, m *monitor) *tab {
	t.Helper()
	ctx, end := chromedp.NewContext(browser, chromedp.WithNewBrowserContext())
	b := &tab{T: t, context: ctx, monitor: m}
	if err := chromedp.Listen(ctx, b.listen); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		b.unharmed()
		end()
	})
	b.run(call(emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: "Europe/Berlin"}),
		call(page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: watchPolicy}))
	b.size(1180, 900)
	return b
}

// call is an action that calls the browser.
func call[P, R any](c cdp.Command[P, R], params P) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, c, params)
		return err
	})
}

func (b *tab) listen(event any) {
	trouble := ""
	switch e := event.(type) {
	case *page.EventJavascriptDialogOpening:
		trouble = "a foreign script ran: " + e.Message
	case *runtime.EventExceptionThrown:
		trouble = fmt.Sprintf("an exception: %+v", e.ExceptionDetails)
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning {
			trouble = fmt.Sprintf("logged: %s", e.Args[0].Value)
		}
	case *cdplog.EventEntryAdded:
		if e.Entry.Level == cdplog.EntryLevelError && !refusal(e.Entry) {
			trouble = e.Entry.Text + " " + e.Entry.URL
		}
	}
	if trouble != "" {
		b.mutex.Lock()
		defer b.mutex.Unlock()
		b.troubles = append(b.troubles, trouble)
	}
}

// refusal reports whether an entry is about an answer of the API that says no. The browser logs each: the page asks who one is before
// it shows the log-in, and asks for what may not be there.
func refusal(e *cdplog.Entry) bool {
	no := strings.Contains(e.Text, "status of 401") || strings.Contains(e.Text, "status of 404")
	return no && (strings.Contains(e.URL, "/api/v1/") || strings.HasSuffix(e.URL, "/login"))
}

// unharmed fails if something went wrong behind what is shown.
func (b *tab) unharmed() {
	b.Helper()
	refused, err := chromedp.Run(b.context, chromedp.Evaluate[[]string](`window.refused`))
	if err != nil {
		b.Errorf("the page is gone: %v", err)
	}
	b.mutex.Lock()
	defer b.mutex.Unlock()
	for _, trouble := range append(b.troubles, refused...) {
		b.Error(trouble)
	}
}

// forgive forgets what went wrong on purpose.
func (b *tab) forgive() {
	b.Helper()
	value[bool](b, `window.refused = [], true`)
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.troubles = nil
}

// navigate opens the monitor's address.
func navigate(m *monitor) chromedp.Action[chromedp.Void] { return chromedp.Navigate(m.url) }

func (b *tab) run(actions ...chromedp.Action[chromedp.Void]) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.context, patience)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		b.Fatal(err)
	}
}

// value evaluates an expression.
func value[T any](b *tab, expression string) T {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.context, patience)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		b.Fatalf("%s: %v", expression, err)
	}
	return v
}

// show goes to a page, and waits until all has been asked for.
func (b *tab) show(where string) {
	b.Helper()
	value[string](b, fmt.Sprintf("location.hash = %q", where))
	b.until("all has been asked", `document.querySelector('h1') !== null && !document.body.innerText.includes('Asking the monitor')`)
}

// see waits for an element.
func (b *tab) see(selector string) {
	b.Helper()
	b.until(selector+" is shown", fmt.Sprintf("document.querySelector(%q)?.checkVisibility() === true", selector))
}

// reads waits until the page has a text.
func (b *tab) reads(text string) {
	b.Helper()
	b.until("the page reads "+text, fmt.Sprintf("document.querySelector('main').innerText.replace(/\\s+/g, ' ').includes(%q)", text))
}

// until waits until an expression is true. It asks from outside: the policy of the page lets no text become a script.
func (b *tab) until(what, expression string) {
	b.Helper()
	ticker := time.NewTicker(30 * time.Millisecond)
	defer ticker.Stop()
	end := time.Now().Add(patience)
	for time.Now().Before(end) {
		if value[bool](b, expression) {
			return
		}
		<-ticker.C
	}
	b.Fatalf("%s: not so. The page says:\n%s", what, value[string](b, `document.body.innerText`))
}

func (b *tab) click(selector string) {
	b.Helper()
	b.see(selector)
	value[bool](b, fmt.Sprintf("document.querySelector(%q).click(), true", selector))
}

func (b *tab) focus(selector string) {
	b.Helper()
	value[bool](b, fmt.Sprintf("document.querySelector(%q).focus(), true", selector))
}

// press presses keys, one after the other.
func (b *tab) press(keys string) {
	b.Helper()
	b.run(chromedp.KeyEvent(keys))
}

// size sets the size of the screen.
func (b *tab) size(width, height int64) {
	b.Helper()
	b.run(call(emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: width, Height: height, DeviceScaleFactor: 1, Mobile: width < 600}))
}

func (b *tab) dark(is bool) {
	b.Helper()
	scheme := "light"
	if is {
		scheme = "dark"
	}
	b.run(call(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"},
	}}))
}
