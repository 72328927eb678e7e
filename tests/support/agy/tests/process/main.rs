//! The built program against real `sh` hooks. One binary of several modules, so that it is linked once.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "helpers of tests fail like tests; clippy.toml reaches only the test functions themselves"
)]

mod life;
mod loading;
mod recordings;
mod replies;
mod running;
mod sequences;
mod world;
