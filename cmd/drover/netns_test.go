//go:build linux

package main

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// insideNet tells the test's own second process that it runs in a network of its own.
const insideNet = "DROVER_TEST_INSIDE_NET"

// inOwnNet runs the test again in a process whose network namespace has nothing but loopback and a tunnel that only the test
// reads, so that whatever a browser sends to wherever is seen and goes nowhere. It says whether this is that process.
func inOwnNet(t *testing.T) bool {
	t.Helper()
	if os.Getenv(insideNet) != "" {
		return true
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=5m")
	cmd.Env = append(os.Environ(), insideNet+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS}
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.CombinedOutput()
	switch {
	case os.IsPermission(err) && os.Getenv("CI") == "":
		t.Skipf("a network namespace needs root: %v", err)
	case err != nil:
		t.Errorf("%v\n%s", err, out)
	default:
		t.Logf("%s", out)
	}
	return false
}

// tunnel is all that there is beside loopback: everything that leaves this machine's loopback comes here, and is never answered.
type tunnel struct {
	mu   sync.Mutex
	seen []string // PROTOCOL ADDRESS:PORT, each once
}

// openTunnel builds the namespace's network: loopback, and a tunnel with a default route and with addresses in the networks
// that clouds and offices use. Names are asked of an address behind it.
func openTunnel(t *testing.T) *tunnel {
	t.Helper()
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	tun := os.NewFile(uintptr(fd), "tun")
	t.Cleanup(func() { _ = tun.Close() })
	ask, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(ask)
	request := func(to int, what uint, name string, set func(*unix.Ifreq)) {
		r, err := unix.NewIfreq(name)
		if err == nil {
			set(r)
			err = unix.IoctlIfreq(to, what, r)
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	up := func(r *unix.Ifreq) { r.SetUint16(unix.IFF_UP | unix.IFF_RUNNING) }
	request(fd, unix.TUNSETIFF, "t0", func(r *unix.Ifreq) { r.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI) })
	request(ask, unix.SIOCSIFFLAGS, "lo", up)
	for i, network := range []string{"203.0.113.9/24", "10.9.9.9/8", "169.254.9.9/16", "192.168.9.9/16"} {
		p := netip.MustParsePrefix(network)
		name := "t0"
		if i > 0 {
			name = fmt.Sprint("t0:", i)
		}
		address := func(a [4]byte) func(*unix.Ifreq) {
			return func(r *unix.Ifreq) {
				if err := r.SetInet4Addr(a[:]); err != nil {
					t.Fatal(err)
				}
			}
		}
		request(ask, unix.SIOCSIFADDR, name, address(p.Addr().As4()))
		var mask [4]byte
		copy(mask[:], net.CIDRMask(p.Bits(), 32))
		request(ask, unix.SIOCSIFNETMASK, name, address(mask))
	}
	request(ask, unix.SIOCSIFFLAGS, "t0", up)
	defaultRoute(t, ask, "t0")
	names := t.TempDir() + "/resolv.conf"
	if err := os.WriteFile(names, []byte("nameserver 203.0.113.53\noptions timeout:1 attempts:1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount(names, "/etc/resolv.conf", "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount("/etc/resolv.conf", unix.MNT_DETACH) })
	w := &tunnel{}
	go w.read(tun) // it ends with the process, which is this test's own
	return w
}

// defaultRoute sends by an interface whatever has no route of its own: SIOCADDRT of netdevice(7) with a struct rtentry.
func defaultRoute(t *testing.T, ask int, device string) {
	t.Helper()
	name, err := unix.BytePtrFromString(device)
	if err != nil {
		t.Fatal(err)
	}
	any := unix.RawSockaddrInet4{Family: unix.AF_INET}
	r := struct {
		_             uintptr
		dst, via, net unix.RawSockaddrInet4
		flags         uint16
		_             uint16
		_, _          uintptr
		metric        int16
		device        *byte
		_, _          uintptr
		_             uint16
	}{dst: any, via: any, net: any, flags: unix.RTF_UP, device: name}
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(ask), unix.SIOCADDRT, uintptr(unsafe.Pointer(&r))); errno != 0 {
		t.Fatalf("default route: %v", errno)
	}
}

// read notes every packet but those to groups, which every machine sends when an interface comes up.
func (w *tunnel) read(tun *os.File) {
	packet := make([]byte, 64<<10)
	for {
		n, err := tun.Read(packet)
		if err != nil {
			return
		}
		if what := describePacket(packet[:n]); what != "" {
			w.mu.Lock()
			if !slices.Contains(w.seen, what) {
				w.seen = append(w.seen, what)
			}
			w.mu.Unlock()
		}
	}
}

func describePacket(p []byte) string {
	switch {
	case len(p) >= 24 && p[0]>>4 == 4:
		to, head := netip.AddrFrom4([4]byte(p[16:20])), int(p[0]&15)*4
		if to.IsMulticast() || len(p) < head+4 {
			return ""
		}
		protocol := map[byte]string{1: "icmp", 6: "tcp", 17: "udp"}[p[9]]
		what := fmt.Sprintf("%s %s:%d", protocol, to, int(p[head+2])<<8|int(p[head+3]))
		if strings.HasSuffix(what, ":53") && protocol == "udp" && len(p) > head+20 {
			what += " " + asked(p[head+20:])
		}
		return what
	case len(p) >= 40 && p[0]>>4 == 6:
		if to := netip.AddrFrom16([16]byte(p[24:40])); !to.IsMulticast() {
			return "ip6 " + to.String()
		}
	}
	return ""
}

// asked reads the name of a question to a resolver (RFC 1035, 4.1.2), which stands behind the header of 12 bytes.
func asked(question []byte) string {
	var labels []string
	for len(question) > 1 && question[0] > 0 && len(question) > int(question[0]) {
		n := int(question[0])
		labels, question = append(labels, string(question[1:1+n])), question[1+n:]
	}
	return strings.Join(labels, ".")
}

// all gives what was seen until now.
func (w *tunnel) all() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.seen)
}

// has says whether something was seen that begins so.
func (w *tunnel) has(prefix string) bool {
	return slices.ContainsFunc(w.all(), func(s string) bool { return strings.HasPrefix(s, prefix) })
}

// forget begins anew.
func (w *tunnel) forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen = nil
}
