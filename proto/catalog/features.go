package catalog

import "slices"

// features are the words of the protocol for what a provider can do beyond its methods. The protocol fixes them, so they
// are declared here and nowhere else.
var features = []string{
	"a11y_snapshot", "attach_existing_browser", "closed_shadow_roots", "console_observe", "containment_hooks",
	"containment_proxy", "dialogs", "dom_snapshot", "download_observe", "element_refs", "events", "extension_required",
	"file_upload", "frames", "full_page_screenshot", "html_snapshot", "input_trusted", "isolated_contexts", "js_eval",
	"manual_setup_required", "network_observe", "pdf", "persistent_profile", "remote_debugging_required", "synthetic_input",
}

// Features lists every feature of the protocol, sorted.
func Features() []string { return slices.Clone(features) }

// IsFeature says whether a word is a feature of the protocol.
func IsFeature(word string) bool {
	_, ok := slices.BinarySearch(features, word)
	return ok
}
