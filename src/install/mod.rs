//! Registers us in agy's hooks.json, and takes that back: [`plan`] decides on text, [`apply`] touches the disk.
//! May not change a file that somebody else wrote. Decided in `docs/adr/0030-install-leaves-files-alone.md`.

pub mod apply;
pub mod plan;
