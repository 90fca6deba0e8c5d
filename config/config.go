// Package config loads and checks the configuration of bsfd: defaults, then a
// YAML file, then BSFD_ environment variables, then flags. Keys that do not
// exist are errors. The settings are the Config types of the modules; their
// koanf and usage tags are the one place where a key and its meaning stand.
package config

import (
	"errors"
	"fmt"
	"os"
	"time"

	"bsfd/bsf"
	"bsfd/bsf/nbsf"
	"bsfd/diameter"
	"bsfd/internal/refusal"
	"bsfd/internal/tgpp"
	"bsfd/internal/tolerate"
	"bsfd/overload"
	"bsfd/storage"
	"bsfd/storage/embedded"
	"bsfd/storage/postgres"
	"bsfd/web/oam"
	"bsfd/web/sbi"
)

// Config is the whole configuration.
type Config struct {
	NF            NF                `koanf:"nf"`
	SBI           SBI               `koanf:"sbi"`
	NBSF          NBSF              `koanf:"nbsf"`
	BSF           bsf.Config        `koanf:"bsf"`
	Errors        sbi.ErrorConfig   `koanf:"errors"`
	Notifications Notifications     `koanf:"notifications"`
	Diameter      diameter.Config   `koanf:"diameter"`
	Overload      overload.Settings `koanf:"overload,runtime" usage:"defaults of the overload and congestion control; the configuration API changes them"`
	Storage       storage.Config    `koanf:"storage"`
	OAM           oam.Config        `koanf:"oam"`
	Log           Log               `koanf:"log"`
	Process       Process           `koanf:"process"`
}

// NF is the identity of this network function.
type NF struct {
	InstanceID string `koanf:"instanceId" usage:"NF instance id, a UUID; generated once and kept in storage when empty"`
	Fqdn       string `koanf:"fqdn" usage:"name of this BSF"`
	SetID      string `koanf:"setId" usage:"NF set id, such as set1.bsfset.5gc.mnc001.mcc001"`
}

// SBI is the service-based interface: its server and what the API answers.
type SBI struct {
	sbi.ServerConfig `koanf:",squash"`
	nbsf.Config      `koanf:",squash"`
}

// NBSF is how Nbsf_Management lives with its consumers.
type NBSF struct {
	Tolerate []string `koanf:"tolerate" usage:"what is served against the letter: names of docs/interoperability.md, all, or none"`
}

// Notifications is the delivery to subscribers.
type Notifications struct {
	bsf.NotifierConfig `koanf:",squash"`
	sbi.ClientConfig   `koanf:",squash"`
}

// Log is the log of the process.
type Log struct {
	Level            string `koanf:"level" usage:"lowest level that is logged: trace, debug, info, warn or error"`
	Format           string `koanf:"format" usage:"json or console"`
	ShowUeIdentifier bool   `koanf:"showUeIdentifier" usage:"write SUPI, GPSI and UE addresses to the log"`
}

// Process is the life of the process.
type Process struct {
	GracePeriod time.Duration `koanf:"gracePeriod" usage:"how long a stop may take before it is cut short"`
	GCHeadroom  int           `koanf:"gcHeadroom" usage:"bytes the heap may grow between two garbage collections"`
}

// Default is the configuration without any file, variable or flag.
func Default() Config {
	return Config{
		NF: NF{Fqdn: "bsf.localdomain"},
		SBI: SBI{
			ServerConfig: sbi.ServerConfig{
				Listen:               []string{"127.0.0.1:8000"},
				TLS:                  sbi.TLSConfig{MinVersion: "1.2", CloseAfter: 10 * time.Minute},
				MaxConnections:       20000,
				MaxConcurrentStreams: 1000,
				MaxHeaderBytes:       64 << 10,
				MaxURIBytes:          8 << 10,
				MaxBodyBytes:         64 << 10,
				HeaderTimeout:        10 * time.Second,
				IdleTimeout:          5 * time.Minute,
				PingInterval:         30 * time.Second,
				StallTimeout:         30 * time.Second,
				DrainDelay:           time.Second,
			},
			Config: nbsf.Config{LateArrival: true, BindingHeader: "nf-instance", MaxCookieBytes: 4096},
		},
		NBSF: NBSF{Tolerate: []string{tolerate.All}},
		BSF: bsf.Config{
			SameAddress:     bsf.Supersede,
			MultipleMatches: bsf.MatchError,
			Collision:       bsf.CollisionRules{TimerHeaders: true, Origination: true, CustomSender: true, Sender: true},
			Revalidation:    true,
			Features:        bsf.SupportedFeatures,
		},
		Errors: sbi.ErrorConfig{
			ServerHeader: true,
			Log:          refusal.Config{Enabled: true, Rate: 10, MaxBurst: 100},
		},
		Notifications: Notifications{
			NotifierConfig: bsf.NotifierConfig{
				Workers: 256, Timeout: 3 * time.Second, Attempts: 5, Backoff: 500 * time.Millisecond,
				GoneAttempts: 3, Backlog: 100000,
			},
			ClientConfig: sbi.ClientConfig{DialTimeout: time.Second},
		},
		Diameter: diameter.DefaultConfig(),
		Overload: overload.Default(),
		Storage: storage.Config{
			Engine:   storage.Embedded,
			DataDir:  "./data",
			Timeout:  5 * time.Second,
			Embedded: embedded.Config{MemTableBytes: 32 << 20, ReserveBytes: 64 << 20},
			Postgres: postgres.Config{MaxConns: 8, Migrate: true},
		},
		OAM:     oam.Config{Listen: "127.0.0.1:8081"},
		Log:     Log{Level: "info", Format: "json"},
		Process: Process{GracePeriod: 30 * time.Second, GCHeadroom: 512 << 20},
	}
}

// Check reports what is wrong, by section, each with its key.
func (c *Config) Check() error {
	var found []error
	for _, part := range []struct {
		key string
		err error
	}{
		{"nf", c.NF.check()},
		{"sbi", c.SBI.ServerConfig.Check()},
		{"sbi", c.API("").Check()},
		{"nbsf", c.NBSF.check()},
		{"bsf", c.BSF.Check()},
		{"notifications", c.Notifications.NotifierConfig.Check()},
		{"diameter", c.Diameter.Check()},
		{"overload", c.Overload.Check()},
		{"storage", c.Storage.Check()},
		{"oam", c.OAM.Check()},
		{"log", c.Log.check()},
		{"process", c.Process.check()},
	} {
		if part.err != nil {
			found = append(found, fmt.Errorf("%s.%w", part.key, part.err))
		}
	}
	return errors.Join(append(found, c.ErrorConfig("").Check(nbsf.Conditions()))...)
}

func (n NF) check() error {
	if n.InstanceID != "" {
		if _, err := tgpp.ParseNfInstanceId(n.InstanceID); err != nil {
			return fmt.Errorf("instanceId: %w", err)
		}
	}
	if _, err := tgpp.ParseFqdn(n.Fqdn); err != nil {
		return fmt.Errorf("fqdn: %w", err)
	}
	if n.SetID != "" {
		if _, err := tgpp.ParseNfSetId(n.SetID); err != nil {
			return fmt.Errorf("setId: %w", err)
		}
	}
	return nil
}

func (n NBSF) check() error {
	if _, err := nbsf.Tolerances.Parse(n.Tolerate); err != nil {
		return fmt.Errorf("tolerate: %w", err)
	}
	return nil
}

func (l Log) check() error {
	switch l.Level {
	case "trace", "debug", "info", "warn", "error":
	default:
		return fmt.Errorf("level: must be trace, debug, info, warn or error")
	}
	if l.Format != "json" && l.Format != "console" {
		return fmt.Errorf("format: must be json or console")
	}
	return nil
}

func (p Process) check() error {
	if p.GracePeriod < 0 || p.GracePeriod > time.Hour {
		return fmt.Errorf("gracePeriod: must be 0s to 1h")
	}
	if p.GCHeadroom < 16<<20 {
		return fmt.Errorf("gcHeadroom: must be at least 16 MiB")
	}
	return nil
}

// Registry is the configuration of the registry.
func (c *Config) Registry() bsf.Config {
	r := c.BSF
	r.ShowUeIdentifier = c.Log.ShowUeIdentifier
	return r
}

// API is the configuration of Nbsf_Management for an instance.
func (c *Config) API(instanceID string) nbsf.Config {
	a := c.SBI.Config
	a.Scheme = "http"
	if c.SBI.TLS.Enabled() {
		a.Scheme = "https"
	}
	a.MaxBodyBytes = c.SBI.ServerConfig.MaxBodyBytes
	a.InstanceID, a.SetID = instanceID, c.NF.SetID
	a.Tolerate, a.DiamRealm = c.NBSF.Tolerate, c.Diameter.OriginRealm
	return a
}

// ErrorConfig is the configuration of error answers for an instance.
func (c *Config) ErrorConfig(instanceID string) sbi.ErrorConfig {
	e := c.Errors
	e.Fqdn, e.InstanceID = c.NF.Fqdn, instanceID
	e.ShowUeIdentifier = c.Log.ShowUeIdentifier
	return e
}

// Gateway is the configuration of the Rx gateway.
func (c *Config) Gateway() diameter.Config {
	d := c.Diameter
	if c.SBI.Strict {
		d.Tolerate = nil
	}
	return d
}

// Client is the configuration of the client for requests of an instance.
func (c *Config) Client(instanceID string) sbi.ClientConfig {
	n := c.Notifications.ClientConfig
	n.UserAgent = "BSF-" + instanceID + " " + c.NF.Fqdn
	return n
}

// StoreName tells instances on one database apart.
func (c *Config) StoreName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return host + " " + fmt.Sprint(c.SBI.Listen)
}
