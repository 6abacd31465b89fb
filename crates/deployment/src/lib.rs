//! Tests only: they compare the deployment in `infra/` with the code.
