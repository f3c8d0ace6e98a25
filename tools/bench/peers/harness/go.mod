module gardenbus.io/peers/harness

go 1.26.5
