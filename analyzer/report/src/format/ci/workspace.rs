//! The checkout that a job works on: paths relative to it, and addresses of its lines.
//!
//! Owns the mapping from the compiler's path of a file to its path in the repository, and what the
//! variables of GitHub Actions and of GitLab CI say of the repository.

use crate::escape::percent_encoded;
use std::path::{Path, PathBuf};

/// The folder that paths in reports for CI systems are relative to.
#[derive(Clone, Debug, Default)]
pub struct Workspace {
    folder: Option<PathBuf>,
    /// Where the commit's files are shown, with a slash at the end; empty when unknown.
    files: String,
}

impl Workspace {
    /// That of the job: `GITHUB_WORKSPACE` or `CI_PROJECT_DIR`, otherwise the current folder.
    pub(crate) fn from_environment() -> Self {
        let given = ["GITHUB_WORKSPACE", "CI_PROJECT_DIR"].into_iter().filter_map(std::env::var_os);
        let folder = given.filter(|v| !v.is_empty()).map(PathBuf::from).next();
        let files = files(|name| std::env::var(name).ok().filter(|v| !v.is_empty())).unwrap_or_default();
        Self { folder: folder.or_else(|| std::env::current_dir().ok()), files }
    }

    /// This folder.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: Some(folder.into()), files: String::new() }
    }

    /// The same folder of a commit whose files are shown below this address.
    #[must_use]
    pub fn shown_at(mut self, files: &str) -> Self {
        files.clone_into(&mut self.files);
        self
    }

    /// The folder.
    pub(crate) fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    /// The path relative to the workspace, if the file lies there. A program built elsewhere (in a
    /// container) names folders that do not exist here: then the longest suffix of the path that
    /// exists in the workspace is used.
    pub(crate) fn relative(&self, file: &str) -> Option<String> {
        let root = self.folder.as_deref()?;
        let path = Path::new(file);
        if path.is_relative() {
            return Some(file.to_string());
        }
        if let Ok(inside) = path.strip_prefix(root) {
            return Some(inside.to_string_lossy().into_owned());
        }
        if path.exists() {
            return None;
        }
        let parts: Vec<_> = path.components().skip(1).collect();
        let mut ends = (1..parts.len()).map(|from| parts[from..].iter().collect::<PathBuf>());
        ends.find(|end| root.join(end).is_file()).map(|end| end.to_string_lossy().into_owned())
    }

    /// The address at which a line of the commit is shown; `None` for a file outside the workspace,
    /// and where no CI system tells the repository.
    pub(crate) fn link(&self, file: &str, line: Option<u32>) -> Option<String> {
        let inside = self.relative(file).filter(|_| !self.files.is_empty())?;
        let line = line.map_or_else(String::new, |line| format!("#L{line}"));
        Some(format!("{}{}{line}", self.files, percent_encoded(&inside)))
    }
}

/// Where the commit's files are shown, as the job's variables tell.
fn files(var: impl Fn(&str) -> Option<String>) -> Option<String> {
    if let (Some(repository), Some(commit)) = (var("GITHUB_REPOSITORY"), var("GITHUB_SHA")) {
        let server = var("GITHUB_SERVER_URL").unwrap_or_else(|| "https://github.com".to_owned());
        return Some(format!("{server}/{repository}/blob/{commit}/"));
    }
    Some(format!("{}/-/blob/{}/", var("CI_PROJECT_URL")?, var("CI_COMMIT_SHA")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_found_in_the_workspace() {
        let root = std::env::temp_dir().join(format!("streamsan-workspace-{}", std::process::id()));
        std::fs::create_dir_all(root.join("src")).unwrap();
        std::fs::write(root.join("src/a.cu"), "").unwrap();
        let w = Workspace::new(&root);
        assert_eq!(w.relative(&root.join("src/a.cu").to_string_lossy()).as_deref(), Some("src/a.cu"));
        assert_eq!(w.relative("/nowhere/build/src/a.cu").as_deref(), Some("src/a.cu"), "built elsewhere");
        assert_eq!(w.relative("/nowhere/b.cu"), None);
        assert_eq!(w.relative("/proc/self/exe"), None, "a file outside");
        assert_eq!(w.relative("src/a.cu").as_deref(), Some("src/a.cu"));
        assert_eq!(w.link("src/a.cu", Some(3)), None, "no CI system");
        let w = w.shown_at("https://forge.example/me/app/blob/c0ffee/");
        let link = |file: &str, line| w.link(file, line);
        assert_eq!(
            link("/nowhere/build/src/a.cu", Some(3)).as_deref(),
            Some("https://forge.example/me/app/blob/c0ffee/src/a.cu#L3")
        );
        assert_eq!(
            link("a b(1).cu", None).as_deref(),
            Some("https://forge.example/me/app/blob/c0ffee/a%20b%281%29.cu")
        );
        assert_eq!(link("/nowhere/b.cu", Some(3)), None, "not in the repository");
        std::fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn the_variables_of_ci_systems_tell_the_commit() {
        let told = |set: &[(&str, &str)]| {
            files(|name| set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned()))
        };
        let github = [("GITHUB_REPOSITORY", "me/app"), ("GITHUB_SHA", "c0ffee")];
        assert_eq!(told(&github).as_deref(), Some("https://github.com/me/app/blob/c0ffee/"));
        let enterprise = [github[0], github[1], ("GITHUB_SERVER_URL", "https://git.example")];
        assert_eq!(told(&enterprise).as_deref(), Some("https://git.example/me/app/blob/c0ffee/"));
        let gitlab = [("CI_PROJECT_URL", "https://lab.example/me/app"), ("CI_COMMIT_SHA", "beef")];
        assert_eq!(told(&gitlab).as_deref(), Some("https://lab.example/me/app/-/blob/beef/"));
        for half in [&github[..1], &gitlab[1..], &[]] {
            assert_eq!(told(half), None);
        }
    }
}
