package config

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/pflag"

	"bsfd/internal/nearest"
)

// FromArgs reads the flags of a subcommand and loads the configuration. extra
// may add flags of the subcommand. The error is pflag.ErrHelp for -h.
func FromArgs(name string, args, environ []string, extra func(*pflag.FlagSet)) (*Config, error) {
	flags := pflag.NewFlagSet("bsfd "+name, pflag.ContinueOnError)
	flags.SetOutput(io.Discard)
	file := flags.String("config", "", "")
	options := Options()
	for _, o := range options {
		if o.FileOnly {
			continue
		}
		flags.String(o.Key, "", o.Usage)
		if o.Default == "true" || o.Default == "false" {
			flags.Lookup(o.Key).NoOptDefVal = "true"
		}
	}
	if extra != nil {
		extra(flags)
	}
	if err := flags.Parse(args); err != nil {
		return nil, flagError(err, flags)
	}
	if flags.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	values := make(map[string]string)
	flags.Visit(func(f *pflag.Flag) {
		if strings.Contains(f.Name, ".") {
			values[f.Name] = f.Value.String()
		}
	})
	return Load(Source{File: *file, Environ: environ, Flags: values})
}

// flagError adds to an unknown flag the one that may have been meant.
func flagError(err error, flags *pflag.FlagSet) error {
	name, ok := strings.CutPrefix(err.Error(), "unknown flag: --")
	if !ok {
		return err
	}
	var known []string
	flags.VisitAll(func(f *pflag.Flag) { known = append(known, f.Name) })
	if near := nearest.Meant(name, known); near != "" {
		return fmt.Errorf("%w%s", err, near)
	}
	return err
}

// Logger is the logger of the process; components derive theirs from it.
func (l Log) Logger(w io.Writer) zerolog.Logger {
	if l.Format == "console" {
		w = zerolog.ConsoleWriter{Out: w, TimeFormat: time.TimeOnly}
	}
	level, err := zerolog.ParseLevel(l.Level)
	if err != nil {
		level = zerolog.InfoLevel
	}
	return zerolog.New(w).Level(level).With().Timestamp().Logger()
}

const help = `bsfd, a 5G Binding Support Function

  bsfd [serve] [flags]   run the network function
  bsfd check [flags]     check configuration, certificates, storage and addresses
  bsfd health [flags]    ask a running bsfd whether it is ready; exit code 0 or 1
  bsfd migrate [flags]   create or upgrade the PostgreSQL schema; --plan only prints
  bsfd lab [flags]       run it with simulated PCFs and AFs and draw their calls;
                         --fail pcf1,pcf2,af1,af2,binding  --pause 2s  --flows N
  bsfd bench [flags]     put load on a bsfd, running or its own; bench -h lists its flags
  bsfd version           print the version

Settings come from --config FILE (YAML), then the environment (BSFD_SBI_LISTEN
sets sbi.listen), then flags. Defaults are in brackets.

  --config FILE
`

// WriteHelp prints the commands and every setting.
func WriteHelp(w io.Writer) error {
	_, err := io.WriteString(w, help)
	return errors.Join(err, writeUsage(w))
}
