module antumbra/peer

go 1.26

require github.com/mariotoffia/godeviceshadow v0.0.9
