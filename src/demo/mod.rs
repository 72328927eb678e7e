//! The demo: a recorded conversation of two turns and four tools, one of which fails, goes through the real hook
//! processes, the real sender and the store, under an id of its own. Needs nothing but this program, and may not take a
//! shorter way than a real conversation does. Decided in `docs/adr/0032-demo-through-the-real-hooks.md`.

pub mod agent;
pub mod outcome;
pub mod recording;
