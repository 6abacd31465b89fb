module antumbra/peer

go 1.24

require github.com/aws/aws-lambda-go v1.55.1
