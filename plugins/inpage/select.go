package inpage

import (
	"context"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
)

// Select chooses options of a native select and gives the values that hold then. Errors: those of Locate;
// unsupported_target for what is no select; invalid_request for an option that is missing, disabled or ambiguous, or for
// several on a select that holds one. Nothing is changed then.
func (p *Page) Select(ctx context.Context, r *browserv1.SelectRequest) ([]string, []*browserv1.Warning, error) {
	var got struct {
		Selected []string `json:"selected"`
		Reverted bool     `json:"reverted"`
	}
	err := p.seek(ctx, r.GetTarget(), "select", func(a aim, wait int, leave string) any {
		args := map[string]any{"target": a, "wait": wait, "leave": leave}
		if len(r.GetLabels()) > 0 {
			args["labels"] = r.GetLabels()
		} else {
			args["values"] = r.GetValues()
		}
		return args
	}, func(FrameID) any { return &got })
	if err != nil {
		return nil, nil, err
	}
	if got.Selected == nil {
		got.Selected = []string{}
	}
	var warnings []*browserv1.Warning
	if got.Reverted {
		warnings = append(warnings, &browserv1.Warning{
			Code: "selection_reverted", Message: "the page changed the selection after it was made; selected says what holds now",
		})
	}
	return got.Selected, warnings, nil
}
