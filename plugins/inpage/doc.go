// Package inpage runs one script in every document of a page and drives it: it reads the page as a tree of roles, names
// and states, keeps refs, finds targets, tests whether they can be acted on, and waits. Every provider uses it, so a page
// looks the same whichever browser serves it.
//
// A provider gives two small things for each page: an Evaluator, which evaluates an expression in the engine's world of a
// frame, and an Input, which dispatches trusted input. It makes one Session for each of its sessions and one Page for
// each page, and then calls Page.Snapshot, Page.Click and the rest with the protocol's own messages.
//
// What stays with the provider: page ids, navigations, dialogs, popups, downloads and pictures. A call that a dialog
// blocks is ended by cancelling its context with a cause; Acted tells whether the input had been sent by then.
package inpage
