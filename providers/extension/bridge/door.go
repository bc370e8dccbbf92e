package bridge

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
)

// extensionOrigin is the origin of any Chromium extension: an unpacked one has another id in every folder.
var extensionOrigin = regexp.MustCompile(`^chrome-extension://[a-p]{32}$`)

// guard lets in what comes for this listener by a name of the loopback, and neither a web page nor a page that had its
// name point here. Requests of browsers must come from an extension; an extension's GET carries no Origin.
func guard(port string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("Referrer-Policy", "no-referrer")
		w.Header().Set("Cross-Origin-Resource-Policy", "same-origin")
		if !loopbackName(r.Host, port) {
			http.Error(w, "this listener answers to 127.0.0.1 and localhost alone", http.StatusMisdirectedRequest)
			return
		}
		page := strings.HasPrefix(r.URL.Path, pairPath)
		if o := r.Header.Values("Origin"); len(o) > 0 {
			own := len(o) == 1 && page && o[0] == "http://"+r.Host
			if !own && (len(o) != 1 || page || !extensionOrigin.MatchString(o[0])) {
				http.Error(w, "this origin is refused", http.StatusForbidden)
				return
			}
		}
		if site := r.Header.Get("Sec-Fetch-Site"); site == "cross-site" || site == "same-site" {
			// A page may follow a link to the pairing page, which a person then sees, and nothing else.
			if r.URL.Path != pairPath || r.Header.Get("Sec-Fetch-Mode") != "navigate" || r.Header.Get("Sec-Fetch-Dest") != "document" {
				if r.Header.Get("Origin") == "" || !extensionOrigin.MatchString(r.Header.Get("Origin")) {
					http.Error(w, "requests of web pages are refused", http.StatusForbidden)
					return
				}
			}
		}
		next.ServeHTTP(w, r)
	})
}

func loopbackName(host, port string) bool {
	name, p, err := net.SplitHostPort(host)
	if err != nil || p != port {
		return false
	}
	switch strings.ToLower(name) {
	case "127.0.0.1", "localhost", "::1":
		return true
	}
	return false
}

// sameUser says whether the other end of a loopback connection belongs to this user (proc(5), /proc/net/tcp), so that
// another user of the machine gets no token. Where the system does not tell, it is refused.
func sameUser(remote string, local net.Addr) bool {
	from, err := net.ResolveTCPAddr("tcp", remote)
	to, ok := local.(*net.TCPAddr)
	if err != nil || !ok {
		return false
	}
	uid, err := ownerOf(from.Port, to.Port)
	return err == nil && uid == os.Getuid()
}

// ownerOf finds the user of the connection between two ports of this machine.
func ownerOf(from, to int) (int, error) {
	for _, path := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		uid, err := scanOwner(path, fmt.Sprintf(":%04X", from), fmt.Sprintf(":%04X", to))
		if err == nil {
			return uid, nil
		}
	}
	return 0, os.ErrNotExist
}

func scanOwner(path, from, to string) (int, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) > 7 && strings.HasSuffix(fields[1], from) && strings.HasSuffix(fields[2], to) {
			return strconv.Atoi(fields[7])
		}
	}
	return 0, os.ErrNotExist
}
