package policy

import "testing"

// These tests guard that no caller opens a file, a page of the browser itself, a page that the URL carries, or the
// credentials of the machine, by any spelling that a browser takes; and that everything else is let through.

func TestGuardRefuses(t *testing.T) {
	for _, text := range []string{
		// Files, in the spellings that the WHATWG parser takes.
		"file:///etc/passwd", "FILE:///etc/passwd", "fIlE:/etc/passwd", " file:///etc/passwd", "\tfile:///etc/passwd\n", "\x00\x1ffile:///x",
		"fi\tle:///etc/passwd", "f\ni\rle:///etc/passwd", "file:\\\\\\etc\\passwd", "file:etc/passwd", "file://localhost/etc/passwd", "filesystem:https://example.com/temporary/x",
		// The browser's own pages and tools.
		"chrome://version", "Chrome://settings/", "chrome-extension://abc/x.html", "chrome-untrusted://x", "chrome-error://chromewebdata/", "chrome-search://x",
		"devtools://devtools/bundled/inspector.html", "about:config", "about:srcdoc", "ABOUT:version", "about:", "about:blank2", "about:BLANK", "edge://flags", "brave://x",
		"resource://gre/", "moz-extension://x", "jar:file:///x!/y",
		// Scripts and pages that the URL carries.
		"javascript:alert(1)", "JaVaScRiPt:1", "java\nscript:1", " javascript:1", "\x01javascript:1", "vbscript:x", "data:text/html,<script>1</script>", "DATA:,x", "da\tta:,x",
		"view-source:https://example.com/", "view-source:file:///etc/passwd", "View-Source:x", "blob:https://example.com/1",
		// The metadata services of clouds.
		"http://169.254.169.254/latest/meta-data/", "https://169.254.169.254", "HTTP://169.254.169.254:80/", "http://user:pw@169.254.169.254/", "http:169.254.169.254",
		"http:/\\169.254.169.254/", "http:\\\\169.254.169.254", "http:////169.254.169.254/", "http://169.254.169.254./", "http://169.254.169.254%2e/", "ftp://169.254.169.254/", "ws://169.254.169.254/",
		"http://2852039166/", "http://0xa9fea9fe/", "http://0xA9.0xFE.0xA9.0xFE/", "http://0251.0376.0251.0376/", "http://025177524776/", "http://169.254.43518/", "http://169.16689662/", "http://0xa9.254.0251.254/",
		"http://%31%36%39.254.169.254/", "http://169\u3002254\u3002169\u3002254/", "http://\u2460\u2465\u2468.254.169.254/", "http://\uff11\uff16\uff19.254.169.254/", "http://169.254.\u00ad169.254/", "ht\ttp://169.254.1\n69.254/",
		"http://[::ffff:169.254.169.254]/", "http://[::ffff:a9fe:a9fe]/", "http://[0:0:0:0:0:ffff:a9fe:a9fe]/", "http://[::a9fe:a9fe]/", "http://[64:ff9b::a9fe:a9fe]/", "http://[2002:a9fe:a9fe::1]/",
		"http://[::ffff:0:169.254.169.254]/", "http://[::ffff:0:a9fe:a9fe]/", "http://[64:ff9b:1::a9fe:a9fe]/", "http://[64:ff9b:1:a9fe:a9:fe00::]/", "http://[64:ff9b:1:a9:fe:a9fe::]/", "http://[64:ff9b:1::a9:fea9:fe00:0]/", "http://[2001:0:1:2:3:4:5601:5601]/",
		"http://[fd00:ec2::254]/", "http://[FD00:EC2:0:0:0:0:0:254]/", "http://[fd00:0ec2::0254]/", "http://100.100.100.200/", "http://0x646464c8/",
		"http://169.254.170.2/", "http://metadata.google.internal/computeMetadata/v1/", "http://METADATA.google.INTERNAL./", "http://metadata.google.internal../", "http://metadata.goog/", "http://metadata%2egoogle%2einternal/",
		"http://meta\u00addata.google.internal/", "http://\uff4detadata.google.internal/",
	} {
		u, err := ParseURL(text)
		if err != nil {
			t.Errorf("%q is no URL: %v", text, err)
			continue
		}
		d := New(nil).Decide(Facts{Method: "page.open", URLs: []URL{u}})
		if d.Denied == nil || d.Denied.Reason != ReasonURL || d.Denied.Message == "" {
			t.Errorf("%q (%s) is let through: %+v", text, u.Text, d.Denied)
		}
	}
}

func TestGuardLetsThrough(t *testing.T) {
	for text, want := range map[string]string{
		"https://example.com":                                      "https://example.com/",
		" HTTPS://EXAMPLE.com:443/a b?q#f ":                        "https://example.com/a%20b?q#f",
		"http://127.0.0.1:8080/x":                                  "http://127.0.0.1:8080/x",
		"http://localhost:3000/":                                   "http://localhost:3000/",
		"http://[::1]:80/":                                         "http://[::1]/",
		"http://[::]/":                                             "http://[::]/",
		"http://10.0.0.1/":                                         "http://10.0.0.1/",
		"http://192.168.1.1/":                                      "http://192.168.1.1/",
		"http://169.254.1.1/":                                      "http://169.254.1.1/",
		"http://[2002:a9fe:101::1]/":                               "http://[2002:a9fe:101::1]/",
		"http://[64:ff9b::808:808]/":                               "http://[64:ff9b::808:808]/",
		"http://169.254.169.254.nip.io/":                           "http://169.254.169.254.nip.io/",
		"https://example.com/169.254.169.254?u=file:///etc/passwd": "https://example.com/169.254.169.254?u=file:///etc/passwd",
		"https://metadata.google.internal.example.com/":            "https://metadata.google.internal.example.com/",
		"https://b\u00fccher.example/":                             "https://xn--bcher-kva.example/",
		"about:blank":                                              "about:blank",
		"About:blank#x":                                            "about:blank#x",
		"about:blank?x":                                            "about:blank?x",
		"mailto:a@example.com":                                     "mailto:a@example.com",
		"custom-app:open":                                          "custom-app:open",
		"ftp://example.com/":                                       "ftp://example.com/",
	} {
		u, err := ParseURL(text)
		if err != nil {
			t.Errorf("%q is no URL: %v", text, err)
			continue
		}
		if d := New(nil).Decide(Facts{Method: "page.open", URLs: []URL{u}}); d.Denied != nil {
			t.Errorf("%q is refused: %+v", text, d.Denied)
		}
		if u.Text != want {
			t.Errorf("%q is opened as %q, not %q", text, u.Text, want)
		}
		if again, err := ParseURL(u.Text); err != nil || again.Text != u.Text {
			t.Errorf("%q read again is %q, %v", u.Text, again.Text, err)
		}
	}
}

func TestNotAURL(t *testing.T) {
	for _, text := range []string{"", " ", "not a url", "example.com", "//example.com/", "/etc/passwd", "http://", "https:// /", "http://a b/", "http://[::1", "http://example.com:99999/", "http://1.2.3.4.5/", "http://256.1.1.1/", "http://ex\x00ample/", "://x", "1http://x/"} {
		u, err := ParseURL(text)
		if err == nil {
			t.Errorf("%q is read as %q", text, u.Text)
		}
	}
}

// FuzzParseURL guards that whatever is read as a URL is read the same again in the form in which it is opened, so that what
// was checked is what is opened, and that no spelling of a refused scheme gets through.
func FuzzParseURL(f *testing.F) {
	for _, s := range []string{"https://example.com/", " fi\tle:///x", "http://0xa9fea9fe/", "about:blank", "http://[::ffff:1.2.3.4]/", "http://\u2460.1.1.1/", "mailto:x", "a:b#\x00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		u, err := ParseURL(text)
		if err != nil {
			return
		}
		again, err := ParseURL(u.Text)
		if err != nil {
			t.Fatalf("%q became %q, which is none: %v", text, u.Text, err)
		}
		if again.Scheme != u.Scheme || again.Host != u.Host {
			t.Fatalf("%q became %q, which is %s %s and not %s %s", text, u.Text, again.Scheme, again.Host, u.Scheme, u.Host)
		}
		if (guard(u) == nil) != (guard(again) == nil) {
			t.Fatalf("%q is judged otherwise as %q", text, u.Text)
		}
	})
}
