//! The child of the tests: `landline-peer ROLE [ARG...]`.

fn main() {}
