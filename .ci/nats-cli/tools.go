//go:build tools

// Package tools names the command that .ci/nats builds out of this module.
package tools

import _ "github.com/nats-io/natscli/nats"
