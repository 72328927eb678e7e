//! Pages of Markdown, as far as the tests look into them.

use std::fs;
use std::path::{Path, PathBuf};

/// A page, named by its path in the checkout.
pub(crate) struct Page {
    pub(crate) name: String,
    pub(crate) text: String,
}

/// A fenced block.
pub(crate) struct Fence {
    pub(crate) language: String,
    pub(crate) text: String,
    pub(crate) line: usize,
}

/// A path in the checkout.
pub(crate) fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// The pages whose commands and words are looked at: README, CONTRIBUTING, docs/*.md, the READMEs of examples.
pub(crate) fn checked() -> Vec<Page> {
    let mut pages = all();
    pages.retain(|page| {
        let name = Path::new(&page.name);
        let folder = name.parent().unwrap().to_str().unwrap();
        ["README.md", "CONTRIBUTING.md"].contains(&page.name.as_str())
            || folder == "docs"
            || name.starts_with("examples")
    });
    assert!(pages.len() >= 13, "pages are missing");
    pages
}

/// Every page in the checkout.
pub(crate) fn all() -> Vec<Page> {
    let root = path("");
    let mut found = Vec::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let (path, name) = (entry.path(), entry.file_name().into_string().unwrap());
            if entry.file_type().unwrap().is_dir() {
                if name != "target" && !name.starts_with('.') {
                    folders.push(path);
                }
            } else if path.extension().is_some_and(|end| end == "md") {
                found.push(Page::read(path.strip_prefix(&root).unwrap().to_str().unwrap()));
            }
        }
    }
    found.sort_by(|one, other| one.name.cmp(&other.name));
    found
}

impl Page {
    pub(crate) fn read(name: &str) -> Self {
        let text = fs::read_to_string(path(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        Self { name: name.to_owned(), text }
    }

    /// Its fenced blocks, at whatever indentation.
    pub(crate) fn fences(&self) -> Vec<Fence> {
        let mut fences = Vec::new();
        let mut open: Option<(usize, Fence)> = None;
        for (index, line) in self.text.lines().enumerate() {
            let fence = line.trim_start().strip_prefix("```");
            open = match (open, fence) {
                (None, None) => None,
                (None, Some(language)) => {
                    let (language, text) = (language.trim().to_owned(), String::new());
                    Some((line.len() - line.trim_start().len(), Fence { language, text, line: index + 1 }))
                }
                (Some((_, block)), Some(_)) => {
                    fences.push(block);
                    None
                }
                (Some((indent, mut block)), None) => {
                    block.text.push_str(line.get(indent..).unwrap_or_default());
                    block.text.push('\n');
                    Some((indent, block))
                }
            };
        }
        assert!(open.is_none(), "{}: a block is not closed", self.name);
        fences
    }

    /// The block after a marker comment.
    pub(crate) fn marked(&self, marker: &str) -> String {
        let at = self.text.lines().position(|line| line == format!("<!-- {marker} -->")).unwrap();
        self.fences().into_iter().find(|fence| fence.line == at + 2).unwrap().text
    }

    /// Links to files that are not there, or to headings that these do not have.
    pub(crate) fn broken_links(&self) -> Vec<String> {
        let mut prose = self.text.clone();
        for fence in self.fences() {
            prose = prose.replace(&fence.text, "");
        }
        let links = prose.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(link, _)| link);
        links.filter(|link| !link.contains("://") && self.is_broken(link)).map(str::to_owned).collect()
    }

    fn is_broken(&self, link: &str) -> bool {
        let (file, heading) = link.split_once('#').unwrap_or((link, ""));
        let target = if file.is_empty() {
            PathBuf::from(&self.name)
        } else {
            Path::new(&self.name).parent().unwrap().join(file)
        };
        if !path(target.to_str().unwrap()).exists() {
            return true;
        }
        !heading.is_empty() && !Self::read(target.to_str().unwrap()).headings().any(|slug| slug == heading)
    }

    /// Headings as they stand in links.
    fn headings(&self) -> impl Iterator<Item = String> + '_ {
        self.text.lines().filter(|line| line.starts_with('#')).map(|line| {
            let kept = line.trim_start_matches('#').trim().to_lowercase();
            let kept = kept.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
            kept.map(|c| if c == ' ' { '-' } else { c }).collect()
        })
    }
}
