package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/chancery-ca/chancery/internal/config"
)

// defaultConfigPath is where a package or an image puts the configuration.
const defaultConfigPath = "/etc/chancery/chancery.yaml"

func configFlag(cmd *cobra.Command, path *string) {
	cmd.Flags().StringVarP(path, "config", "c", defaultConfigPath, "configuration file")
}

func loadConfig(path string) (*config.Config, error) {
	cfg, err := config.Load(path)
	if err != nil {
		return nil, usageError{err}
	}
	return cfg, nil
}

func configCommand() *cobra.Command {
	var path string
	var output format
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Show every setting in effect and where it comes from",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := loadConfig(path)
			if err != nil {
				return err
			}
			return inFormat(output, func() error { return cfg.Render(cmd.OutOrStdout()) }, func() error { return cfg.RenderJSON(cmd.OutOrStdout()) })
		},
	}
	configFlag(cmd, &path)
	outputFlag(cmd, &output)
	cmd.AddCommand(configValidateCommand())
	return cmd
}

func configValidateCommand() *cobra.Command {
	var path string
	cmd := &cobra.Command{
		Use:   "validate",
		Short: "Say what the server would say of its configuration, without starting it",
		Long: `Loads the configuration and everything that it names (keys, certificates, trust
anchors, rules) as "chancery serve" would, and says what is wrong. It does not open the
ledger and does not listen, so what is wrong there shows only at a start.
Exit code 0: nothing of this is wrong; 2: something is.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := loadConfig(path)
			if err != nil {
				return err
			}
			if err := validatePolicy(cfg); err != nil {
				return usageError{err}
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s is valid\n", path)
			return err
		},
	}
	configFlag(cmd, &path)
	return cmd
}
