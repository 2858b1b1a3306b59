module github.com/podvisor/podvisor/images/tools/peer

go 1.26.0
