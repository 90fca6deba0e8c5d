package config

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/go-viper/mapstructure/v2"
	"github.com/knadh/koanf/parsers/yaml"
	"github.com/knadh/koanf/providers/confmap"
	"github.com/knadh/koanf/providers/rawbytes"
	"github.com/knadh/koanf/v2"

	"bsfd/internal/nearest"
)

// Option is one setting as users see it.
type Option struct {
	Key     string // path with dots, such as sbi.listen
	Usage   string
	Default string
	// FileOnly is set for settings that are no single value.
	FileOnly bool
	// List is set for a list of texts or numbers.
	List bool
	// Element is set for a key inside the elements of a list, such as
	// diameter.peers[].host.
	Element bool
	// Runtime is set for a section of settings that the configuration API
	// changes; the file has their defaults.
	Runtime bool
}

// Env is the name of the environment variable of the option.
func (o Option) Env() string { return EnvPrefix + strings.ToUpper(strings.ReplaceAll(o.Key, ".", "_")) }

// EnvPrefix begins the environment variables of bsfd.
const EnvPrefix = "BSFD_"

// Options lists all settings in the order of the configuration.
func Options() []Option {
	return collect(nil, "", reflect.ValueOf(Default()))
}

func collect(list []Option, prefix string, v reflect.Value) []Option {
	t := v.Type()
	for i := range t.NumField() {
		f := t.Field(i)
		name, rest, _ := strings.Cut(f.Tag.Get("koanf"), ",")
		switch {
		case name == "-" || !f.IsExported():
			continue
		case rest == "runtime":
			// These have a table of their own: the file sets their defaults.
			list = append(list, Option{Key: prefix + name, Usage: f.Tag.Get("usage"), FileOnly: true, Runtime: true})
		case rest == "squash":
			list = collect(list, prefix, v.Field(i))
		case f.Type.Kind() == reflect.Struct:
			list = collect(list, prefix+name+".", v.Field(i))
		case f.Type.Kind() == reflect.Slice && f.Type.Elem().Kind() == reflect.Struct:
			list = append(list, Option{Key: prefix + name, Usage: f.Tag.Get("usage"), FileOnly: true})
			for _, o := range collect(nil, prefix+name+"[].", reflect.Zero(f.Type.Elem())) {
				o.FileOnly, o.Element, o.Default = true, true, ""
				list = append(list, o)
			}
		default:
			list = append(list, Option{
				Key: prefix + name, Usage: f.Tag.Get("usage"), Default: valueText(v.Field(i)),
				FileOnly: f.Type.Kind() == reflect.Map, List: f.Type.Kind() == reflect.Slice,
			})
		}
	}
	return list
}

func valueText(v reflect.Value) string {
	switch x := v.Interface().(type) {
	case []string:
		return strings.Join(x, ",")
	case time.Duration:
		return x.String()
	case fmt.Stringer:
		return x.String()
	}
	if v.Kind() == reflect.Slice || v.Kind() == reflect.Map {
		return ""
	}
	return fmt.Sprint(v.Interface())
}

// Source is where a configuration comes from beside its defaults.
type Source struct {
	// File is the YAML file, or empty for none.
	File string
	// Environ is the environment, as os.Environ gives it.
	Environ []string
	// Flags holds the values of flags by key.
	Flags map[string]string
}

// Load merges the source over the defaults and checks the result. An error
// names the key and the reason.
func Load(src Source) (*Config, error) {
	k := koanf.New(".")
	var unknown error
	if src.File != "" {
		raw, err := os.ReadFile(src.File)
		if err != nil {
			return nil, err
		}
		if err := k.Load(rawbytes.Provider(raw), yaml.Parser()); err != nil {
			return nil, fmt.Errorf("%s: %w", src.File, err)
		}
		unknown = unknownKeys(k.Raw(), src.File)
	}
	env, err := fromEnviron(src.Environ)
	if unknown = errors.Join(unknown, err); unknown != nil {
		return nil, unknown
	}
	for _, values := range []map[string]any{env, asAny(src.Flags)} {
		if err := k.Load(confmap.Provider(values, "."), nil); err != nil {
			return nil, err
		}
	}
	cfg := Default()
	err = k.UnmarshalWithConf("", &cfg, koanf.UnmarshalConf{DecoderConfig: &mapstructure.DecoderConfig{
		TagName: "koanf", Result: &cfg, WeaklyTypedInput: true, ErrorUnused: true, ZeroFields: true,
		DecodeHook: mapstructure.ComposeDecodeHookFunc(
			mapstructure.StringToTimeDurationHookFunc(),
			mapstructure.TextUnmarshallerHookFunc(),
			splitList,
		),
	}})
	if err != nil {
		return nil, decodeError(err)
	}
	return &cfg, cfg.Check()
}

// splitList turns the text of a variable or a flag into the elements of a
// list.
func splitList(from, to reflect.Type, data any) (any, error) {
	if from.Kind() != reflect.String || to.Kind() != reflect.Slice {
		return data, nil
	}
	list := []string{} // not nil: an empty text empties the list
	for part := range strings.SplitSeq(data.(string), ",") {
		if part = strings.TrimSpace(part); part != "" {
			list = append(list, part)
		}
	}
	return list, nil
}

// decodeError drops the frame of the library around what it found.
func decodeError(err error) error {
	var joined interface{ Unwrap() []error }
	if errors.As(err, &joined) {
		if list := joined.Unwrap(); len(list) > 0 {
			return errors.Join(list...)
		}
	}
	return err
}

// unknownKeys reports every key of the file that is no setting.
func unknownKeys(raw map[string]any, file string) error {
	options := Options()
	var known []string
	for _, o := range options {
		known = append(known, o.Key)
	}
	var found []error
	var walk func(prefix string, m map[string]any)
	walk = func(prefix string, m map[string]any) {
		for _, name := range slices.Sorted(maps.Keys(m)) {
			v, key := m[name], prefix+name
			isOption := slices.Contains(known, key)
			isSection := slices.ContainsFunc(known, func(k string) bool { return strings.HasPrefix(k, key+".") })
			switch sub, ok := v.(map[string]any); {
			case isOption:
			case isSection && ok:
				walk(key+".", sub)
			case isSection && v == nil:
			case isSection:
				found = append(found, fmt.Errorf("%s: %s: must be a section", file, key))
			default:
				found = append(found, fmt.Errorf("%s: %s: unknown key%s", file, key, nearest.Meant(key, known)))
			}
		}
	}
	walk("", raw)
	return errors.Join(found...)
}

// fromEnviron picks the variables of bsfd. Those that Kubernetes sets for a
// service of the name "bsfd" are not ours.
func fromEnviron(environ []string) (map[string]any, error) {
	values := make(map[string]any)
	options := Options()
	var known []string
	for _, o := range options {
		if !o.FileOnly {
			known = append(known, o.Env())
		}
	}
	var found []error
	for _, pair := range environ {
		name, value, _ := strings.Cut(pair, "=")
		rest, ok := strings.CutPrefix(name, EnvPrefix)
		if !ok || strings.HasPrefix(rest, "SERVICE_") || strings.HasPrefix(rest, "PORT") {
			continue
		}
		i := slices.IndexFunc(options, func(o Option) bool { return o.Env() == name && !o.FileOnly })
		if i < 0 {
			found = append(found, fmt.Errorf("%s: unknown environment variable%s", name, nearest.Meant(name, known)))
			continue
		}
		values[options[i].Key] = value
	}
	return values, errors.Join(found...)
}

func asAny(m map[string]string) map[string]any {
	out := make(map[string]any, len(m))
	for k, v := range m {
		out[k] = v
	}
	return out
}
