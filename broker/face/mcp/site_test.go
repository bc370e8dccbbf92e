package mcp_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// shop is the site on which the agent works; the payment frame comes from another origin.
func shop(t testing.TB) string {
	t.Helper()
	bank := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { html(w, bankPage) }))
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/login":
			if r.Method == http.MethodPost {
				if r.FormValue("password") != "lovelace" {
					html(w, "<title>Login</title><p role=alert>Wrong password</p>")
					return
				}
				http.SetCookie(w, &http.Cookie{Name: "who", Value: r.FormValue("user")})
				http.Redirect(w, r, "/account", http.StatusSeeOther)
				return
			}
			html(w, `<title>Login</title><form method=post><label>User <input name=user></label><label>Password <input type=password name=password></label><button>Sign in</button></form>`)
		case "/account":
			who := "nobody"
			if c, err := r.Cookie("who"); err == nil {
				who = c.Value
			}
			html(w, "<title>Account</title><h1>Welcome "+who+"</h1>")
		case "/report.csv":
			w.Header().Set("Content-Disposition", `attachment; filename="report.csv"`)
			w.Header().Set("Content-Type", "text/csv")
			fmt.Fprint(w, "item,price\nlamp,12\n")
		case "/pay":
			html(w, `<title>Pay</title><h1>Pay</h1><iframe title="Card" src="`+bank.URL+`" width=400 height=200></iframe><p id=out></p><script>onmessage = e => out.textContent = 'Bank says ' + e.data</script>`)
		case "/lamp", "/torch":
			price := map[string]int{"/lamp": 12, "/torch": 9}[r.URL.Path]
			html(w, fmt.Sprintf("<title>%s</title><h1>%[1]s</h1><p>Price: %d EUR</p><button onclick=\"this.textContent='Ordered'\">Order</button>", strings.TrimPrefix(r.URL.Path, "/"), price))
		default:
			page, ok := pages[r.URL.Path]
			if !ok {
				http.NotFound(w, r)
				return
			}
			html(w, page)
		}
	}))
	t.Cleanup(func() {
		for _, x := range []*httptest.Server{s, bank} {
			x.CloseClientConnections()
			x.Close()
		}
	})
	return s.URL
}

func html(w http.ResponseWriter, page string) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	fmt.Fprint(w, "<!doctype html>", page)
}

const bankPage = `<title>Bank</title><form onsubmit="event.preventDefault(); parent.postMessage('paid with ' + card.value, '*')"><label>Card number <input id=card></label><button>Pay now</button></form>`

var pages = map[string]string{
	"/table": `<title>Stock</title><label>Filter <input id=f oninput="for (const r of document.querySelectorAll('tbody tr')) r.hidden = !r.textContent.includes(f.value)"></label>
<table><tbody>` + rows() + `</tbody></table>`,
	"/long": `<title>Application</title><form onsubmit="event.preventDefault(); done.textContent = 'Received ' + [...new FormData(this).entries()].map(e => e.join('=')).join('; ')">
<label>First name <input name=first></label><label>Last name <input name=last></label><label>Born <input type=date name=born></label>
<label>Country <select name=country><option value=de>Germany<option value=fr>France</select></label>
<fieldset><legend>Size</legend><label><input type=radio name=size value=s>Small</label><label><input type=radio name=size value=l>Large</label></fieldset>
<label>About you <textarea name=about></textarea></label><label><input type=checkbox name=terms> I agree</label><button>Send</button></form><p id=done></p>`,
	"/upload": `<title>Upload</title><label>Picture <input type=file onchange="out.textContent = files[0].name + ' has ' + files[0].size + ' bytes'"></label><p id=out></p>`,
	"/ask":    `<title>Delete</title><button onclick="this.textContent = confirm('Delete everything?') ? 'Deleted' : 'Kept'">Delete</button>`,
	"/files":  `<title>Files</title><a href="/report.csv">Report</a>`,
	"/feed": `<title>Feed</title><div id=list></div><script>let n = 0, due = 0; const more = () => { due = 0; for (let i = 0; i < 20; i++) list.insertAdjacentHTML('beforeend', '<p style="height:60px">Post ' + (++n) + '</p>') }; more();
addEventListener('scroll', () => { if (!due && n < 80 && innerHeight + scrollY + 2 > document.documentElement.scrollHeight) due = setTimeout(more, 30) })</script>`,
	"/spa": `<title>Checkout</title><main id=app></main><script>
const steps = { cart: '<h1>Cart</h1><button onclick="go(\'address\')">Continue</button>',
 address: '<h1>Address</h1><label>Street <input id=street></label><button onclick="where = street.value; go(\'done\')">Buy</button>', done: () => '<h1>Thank you</h1><p>We ship to ' + where + '</p>' };
let where; function go(s) { history.pushState(s, '', '#' + s); setTimeout(() => { app.innerHTML = typeof steps[s] === 'string' ? steps[s] : steps[s]() }, 40) }
app.innerHTML = steps.cart</script>`,
}

func rows() string {
	var b strings.Builder
	for i := range 120 {
		fmt.Fprintf(&b, "<tr><td>Part %03d</td><td>%d pieces</td></tr>", i, i*7)
	}
	return b.String()
}
