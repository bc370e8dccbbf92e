package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/droverhq/drover/broker/token"
	"github.com/droverhq/drover/proto/fault"
)

func (a *app) tokenCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "token", Short: "Make, list and revoke the tokens of HTTP callers", GroupID: groupAdmin, RunE: a.group, Args: cobra.ArbitraryArgs,
		Long: `Make, list and revoke the named tokens that HTTP callers show. Each token is a caller of its own:
two of them never see each other's sessions. A daemon that runs takes changes up at once.`,
	}
	var labels []string
	make := &cobra.Command{
		Use: "new NAME", Short: "Make a token and print it; it cannot be read again", Args: exact(1, 1, "NAME"),
		RunE: func(_ *cobra.Command, args []string) error {
			return a.withTokens(func(f *token.File) error {
				plain, err := f.New(args[0], labels)
				if err != nil {
					return err
				}
				if a.global.json {
					a.printJSON([]byte(fmt.Sprintf(`{"name":%s,"token":%s}`, jsonText(args[0]), jsonText(plain))))
				} else {
					fmt.Fprintln(a.out, plain)
				}
				return nil
			})
		},
	}
	make.Flags().StringArrayVar(&labels, "label", nil, "a `LABEL` for the policy; may be repeated")
	cmd.AddCommand(make,
		&cobra.Command{
			Use: "list", Short: "List the tokens, without the tokens themselves", Args: exact(0, 0, ""),
			RunE: func(*cobra.Command, []string) error { return a.withTokens(a.listTokens) },
		},
		&cobra.Command{
			Use: "revoke NAME", Short: "Take a token away", Args: exact(1, 1, "NAME"), ValidArgsFunction: completeTokens,
			RunE: func(_ *cobra.Command, args []string) error {
				return a.withTokens(func(f *token.File) error {
					if err := f.Revoke(args[0]); err != nil {
						return err
					}
					if a.global.json {
						a.printJSON([]byte(fmt.Sprintf(`{"name":%s,"revoked":true}`, jsonText(args[0]))))
					} else {
						fmt.Fprintf(a.out, "%s is revoked\n", args[0])
					}
					return nil
				})
			},
		})
	return cmd
}

func (a *app) withTokens(do func(*token.File) error) error {
	f, err := token.Open(findPlaces().tokens())
	if err != nil {
		return fault.New(fault.PermissionDenied, "%v", err).Reason("path_refused").Cause(err)
	}
	err = do(f)
	var file *fs.PathError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &file):
		return fault.New(fault.PermissionDenied, "%v", err).Reason("path_refused").Cause(err)
	case errors.Is(err, token.ErrUnknown), errors.Is(err, token.ErrExists):
		return fault.New(fault.InvalidRequest, "%v", err).Hint("drover token list shows those there are").Cause(err)
	default: // a name that cannot be one
		return fault.New(fault.InvalidRequest, "%v", err).Cause(err)
	}
}

func (a *app) listTokens(f *token.File) error {
	list, err := f.List()
	if err != nil {
		return err
	}
	if a.global.json {
		type row struct {
			Name    string    `json:"name"`
			Labels  []string  `json:"labels"`
			Created time.Time `json:"created_at"`
		}
		rows := []row{}
		for _, t := range list {
			rows = append(rows, row{t.Name, append([]string{}, t.Labels...), t.Created})
		}
		data, err := json.Marshal(map[string]any{"tokens": rows})
		if err == nil {
			a.printJSON(data)
		}
		return err
	}
	if len(list) == 0 {
		fmt.Fprintln(a.err, "no tokens")
		return nil
	}
	w := tabwriter.NewWriter(a.out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tLABELS\tCREATED")
	for _, t := range list {
		fmt.Fprintf(w, "%s\t%s\t%s\n", t.Name, strings.Join(t.Labels, " "), t.Created.Local().Format(time.DateTime))
	}
	return w.Flush()
}

func completeTokens(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var names []string
	if f, err := token.Open(findPlaces().tokens()); err == nil {
		list, _ := f.List()
		for _, t := range list {
			names = append(names, t.Name)
		}
	}
	return words(names...)(cmd, args, typed)
}
