// What .ci/nats builds: `go install …@version` would ask for the list of versions, which not every module proxy has.
module gardenbus.example/nats-cli

go 1.24.0

require github.com/nats-io/natscli v0.3.0
