//! Reads a crate as a tree of modules, and resolves paths to the files that define what they name.
//!
//! Owns what of Rust's name resolution the checks need: `crate`, `self` and `super`, child modules,
//! imports and re-exports, globs. What a macro defines and methods found through types are not
//! resolved; test code is left out.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use proc_macro2::{Spacing, TokenStream, TokenTree};
use syn::visit::Visit;

use crate::workspace;

/// The modules of one library or program.
pub struct Tree {
    /// Its source files, relative to the repository; the first is the root.
    pub files: Vec<PathBuf>,
    /// Its modules; the first is the root.
    pub modules: Vec<Module>,
}

/// A module: a file, or a block in one.
#[derive(Default)]
pub struct Module {
    /// The file it is written in.
    pub file: usize,
    /// Public types by name, with their lines.
    pub types: Vec<(String, usize)>,
    /// Paths that its code names, each with the line.
    pub paths: Vec<(Vec<String>, usize)>,
    /// Types that methods are written for here, each with the line.
    pub impls: Vec<(Vec<String>, usize)>,
    /// Imports of everything, with their lines.
    pub globs: Vec<(Vec<String>, usize)>,
    parent: Option<usize>,
    children: HashMap<String, usize>,
    imports: HashMap<String, Vec<String>>,
    items: BTreeSet<String>,
}

/// What a path leads to.
#[derive(Clone, Copy, PartialEq)]
pub enum Target {
    /// A module itself.
    Module(usize),
    /// An item that this module defines.
    Item(usize),
}

/// Reads the library and the programs of a crate.
pub fn read(folder: &Path) -> Result<Vec<Tree>> {
    let mut trees = Vec::new();
    for root in ["src/lib.rs", "src/main.rs"] {
        let file = folder.join(root);
        if !workspace::root().join(&file).exists() {
            continue;
        }
        trees.push(read_root(&file)?);
    }
    Ok(trees)
}

/// Reads one library or program from its root.
pub fn read_root(root: &Path) -> Result<Tree> {
    let mut tree = Tree { files: Vec::new(), modules: Vec::new() };
    let beside = root.parent().unwrap_or(Path::new("")).to_path_buf();
    tree.load(None, root, beside)?;
    Ok(tree)
}

impl Tree {
    /// What a path means inside a module; `None` for what lies outside the crate.
    pub fn resolve(&self, module: usize, path: &[String]) -> Option<Target> {
        self.resolve_from(module, path, &mut BTreeSet::new())
    }

    /// Whether a module lies inside another one, or is it.
    pub fn is_inside(&self, mut module: usize, outer: usize) -> bool {
        loop {
            if module == outer {
                return true;
            }
            let Some(parent) = self.modules[module].parent else { return false };
            module = parent;
        }
    }

    fn resolve_from(&self, module: usize, path: &[String], seen: &mut BTreeSet<(usize, String)>) -> Option<Target> {
        let mut at = Target::Module(module);
        for (nth, name) in path.iter().enumerate() {
            let Target::Module(inside) = at else { break };
            at = match name.as_str() {
                "crate" if nth == 0 => Target::Module(0),
                "self" if nth == 0 => Target::Module(module),
                "super" => Target::Module(self.modules[inside].parent?),
                _ => match self.look_up(inside, name, seen) {
                    Some(target) => target,
                    // A macro may have made it; a first name is of another crate, or built in.
                    None if nth > 0 => Target::Item(inside),
                    None => return None,
                },
            };
        }
        Some(at)
    }

    fn look_up(&self, module: usize, name: &str, seen: &mut BTreeSet<(usize, String)>) -> Option<Target> {
        let inside = &self.modules[module];
        if let Some(&child) = inside.children.get(name) {
            return Some(Target::Module(child));
        }
        if inside.items.contains(name) {
            return Some(Target::Item(module));
        }
        if !seen.insert((module, name.to_owned())) {
            return None;
        }
        if let Some(path) = inside.imports.get(name) {
            return self.resolve_from(module, path, seen);
        }
        inside.globs.iter().find_map(|(path, _)| match self.resolve_from(module, path, &mut seen.clone())? {
            Target::Module(other) => self.look_up(other, name, seen),
            Target::Item(_) => None,
        })
    }

    /// Reads a file as a module. `beside` is the folder of its children's files.
    fn load(&mut self, parent: Option<usize>, file: &Path, beside: PathBuf) -> Result<usize> {
        let text = std::fs::read_to_string(workspace::root().join(file)).with_context(|| file.display().to_string())?;
        let parsed = syn::parse_file(&text).with_context(|| file.display().to_string())?;
        self.files.push(file.to_path_buf());
        let module = Module { file: self.files.len() - 1, parent, ..Module::default() };
        self.modules.push(module);
        let at = self.modules.len() - 1;
        self.fill(at, &parsed.items, &beside)?;
        Ok(at)
    }

    fn fill(&mut self, at: usize, items: &[syn::Item], beside: &Path) -> Result<()> {
        let mut reader = Reader::default();
        for item in items {
            reader.visit_item(item);
        }
        let Reader { modules, mut found } = reader;
        let here = &mut self.modules[at];
        std::mem::swap(&mut found.children, &mut here.children);
        *here = Module { file: here.file, parent: here.parent, ..found };
        for item in modules {
            let name = item.ident.to_string();
            let child = match &item.content {
                Some((_, items)) => {
                    self.modules.push(Module { file: self.modules[at].file, parent: Some(at), ..Module::default() });
                    let child = self.modules.len() - 1;
                    self.fill(child, items, &beside.join(&name))?;
                    child
                }
                None => {
                    let (file, beside) = self.find(at, beside, item);
                    self.load(Some(at), &file, beside)?
                }
            };
            self.modules[at].children.insert(name, child);
        }
        Ok(())
    }

    /// The file of a module, and the folder of its children's files.
    fn find(&self, at: usize, beside: &Path, item: &syn::ItemMod) -> (PathBuf, PathBuf) {
        let name = item.ident.to_string();
        let given = item.attrs.iter().find_map(|attribute| match &attribute.meta {
            syn::Meta::NameValue(pair) if pair.path.is_ident("path") => match &pair.value {
                syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) => Some(text.value()),
                _ => None,
            },
            _ => None,
        });
        let folder = self.files[self.modules[at].file].parent().unwrap_or(Path::new(""));
        if let Some(given) = given {
            let file = folder.join(given);
            let beside = file.parent().unwrap_or(folder).to_path_buf();
            return (file, beside);
        }
        let own = beside.join(&name).join("mod.rs");
        let file = if workspace::root().join(&own).exists() { own } else { beside.join(format!("{name}.rs")) };
        (file, beside.join(&name))
    }
}

/// Reads one crate of files that are given as text: a name relative to `src/`, and what is in it.
#[cfg(test)]
pub fn of_texts(texts: &[(&str, &str)]) -> Tree {
    let folder =
        std::env::temp_dir().join(format!("xtask-lint-{}-{:?}", std::process::id(), std::thread::current().id()));
    let _ = std::fs::remove_dir_all(&folder);
    for (name, text) in texts {
        let file = folder.join("src").join(name);
        std::fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
        std::fs::write(file, text).expect("a file");
    }
    let tree = read(&folder).expect("a crate").remove(0);
    std::fs::remove_dir_all(&folder).expect("the folder is there");
    tree
}

/// Whether an item is compiled for tests only.
fn is_test(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("test")
            || attribute.path().is_ident("cfg")
                && matches!(&attribute.meta, syn::Meta::List(list) if is_test_condition(&list.tokens))
    })
}

/// Whether a condition holds for tests only: `test`, or `all` of it and others.
fn is_test_condition(condition: &TokenStream) -> bool {
    let words: Vec<_> = condition.clone().into_iter().collect();
    match words.as_slice() {
        [TokenTree::Ident(word)] => word == "test" || word == "loom",
        [TokenTree::Ident(word), TokenTree::Group(group)] if word == "all" => {
            let stream: Vec<_> = group.stream().into_iter().collect();
            let mut parts = stream.split(|token| matches!(token, TokenTree::Punct(mark) if mark.as_char() == ','));
            parts.any(|part| is_test_condition(&part.iter().cloned().collect()))
        }
        _ => false,
    }
}

/// Collects what a module holds; modules inside it are left to the caller.
#[derive(Default)]
struct Reader<'a> {
    modules: Vec<&'a syn::ItemMod>,
    found: Module,
}

impl Reader<'_> {
    fn import(&mut self, tree: &syn::UseTree, prefix: &mut Vec<String>, named: bool) {
        match tree {
            syn::UseTree::Path(part) => {
                prefix.push(part.ident.to_string());
                self.import(&part.tree, prefix, named);
                prefix.pop();
            }
            syn::UseTree::Group(group) => {
                for part in &group.items {
                    self.import(part, prefix, named);
                }
            }
            syn::UseTree::Glob(star) => {
                self.found.globs.push((prefix.clone(), star.star_token.span.start().line));
            }
            syn::UseTree::Name(part) => self.import_one(prefix, &part.ident, &part.ident, named),
            syn::UseTree::Rename(part) => self.import_one(prefix, &part.ident, &part.rename, named),
        }
    }

    fn import_one(&mut self, prefix: &[String], name: &proc_macro2::Ident, alias: &proc_macro2::Ident, named: bool) {
        let mut path = prefix.to_vec();
        let mut alias = alias.to_string();
        if name == "self" {
            if alias == "self" {
                alias = path.last().cloned().unwrap_or_default();
            }
        } else {
            path.push(name.to_string());
        }
        if named {
            self.found.paths.push((path.clone(), name.span().start().line));
        }
        // `use foo;` of a crate would lead to itself.
        if path.len() > 1 || path[0] != alias {
            self.found.imports.insert(alias, path);
        }
    }

    /// Finds paths in what a macro gets: identifiers with `::` between them.
    fn scan(&mut self, tokens: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let mut line = 0;
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Ident(name) => {
                    if colons != 2 {
                        self.finish(&mut path, line);
                        line = name.span().start().line;
                    }
                    path.push(name.to_string());
                    colons = 0;
                }
                TokenTree::Punct(mark) if mark.as_char() == ':' && !path.is_empty() => {
                    colons += 1;
                    if colons == 1 && mark.spacing() == Spacing::Alone {
                        self.finish(&mut path, line);
                        colons = 0;
                    }
                }
                TokenTree::Group(group) => {
                    self.finish(&mut path, line);
                    colons = 0;
                    self.scan(group.stream());
                }
                _ => {
                    self.finish(&mut path, line);
                    colons = 0;
                }
            }
        }
        self.finish(&mut path, line);
    }

    fn finish(&mut self, path: &mut Vec<String>, line: usize) {
        let path = std::mem::take(path);
        // A single word in a macro may be anything; a type's name is taken for one.
        let is_type = |name: &String| name.starts_with(|first: char| first.is_ascii_uppercase());
        if path.len() > 1 || path.first().is_some_and(is_type) {
            self.found.paths.push((path, line));
        }
    }

    fn define(&mut self, name: &proc_macro2::Ident) {
        self.found.items.insert(name.to_string());
    }

    fn define_type(&mut self, name: &proc_macro2::Ident, visibility: &syn::Visibility) {
        self.define(name);
        let private = match visibility {
            syn::Visibility::Inherited => true,
            syn::Visibility::Restricted(to) => to.path.is_ident("self"),
            syn::Visibility::Public(_) => false,
        };
        if !private {
            self.found.types.push((name.to_string(), name.span().start().line));
        }
    }
}

impl<'a> Visit<'a> for Reader<'a> {
    fn visit_item(&mut self, item: &'a syn::Item) {
        if is_test(attributes_of(item)) {
            return;
        }
        match item {
            syn::Item::Mod(module) => return self.modules.push(module),
            syn::Item::Use(import) => {
                // A re-export alone uses nothing.
                let named = matches!(import.vis, syn::Visibility::Inherited);
                return self.import(&import.tree, &mut Vec::new(), named);
            }
            syn::Item::Struct(item) => self.define_type(&item.ident, &item.vis),
            syn::Item::Enum(item) => self.define_type(&item.ident, &item.vis),
            syn::Item::Union(item) => self.define_type(&item.ident, &item.vis),
            syn::Item::Trait(item) => self.define_type(&item.ident, &item.vis),
            syn::Item::Type(item) => self.define_type(&item.ident, &item.vis),
            syn::Item::Fn(item) => self.define(&item.sig.ident),
            syn::Item::Const(item) => self.define(&item.ident),
            syn::Item::Static(item) => self.define(&item.ident),
            syn::Item::Macro(item) => {
                if let Some(name) = &item.ident {
                    self.define(name);
                }
            }
            syn::Item::Impl(item) => {
                if let (None, syn::Type::Path(ty)) = (&item.trait_, &*item.self_ty) {
                    let names = ty.path.segments.iter().map(|segment| segment.ident.to_string()).collect();
                    self.found.impls.push((names, item.impl_token.span.start().line));
                }
            }
            _ => {}
        }
        syn::visit::visit_item(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'a syn::ImplItemFn) {
        if !is_test(&item.attrs) {
            syn::visit::visit_impl_item_fn(self, item);
        }
    }

    fn visit_path(&mut self, path: &'a syn::Path) {
        let names: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        if path.leading_colon.is_none() {
            let line = path.segments.first().map_or(0, |segment| segment.ident.span().start().line);
            self.found.paths.push((names, line));
        }
        syn::visit::visit_path(self, path);
    }

    fn visit_vis_restricted(&mut self, _: &'a syn::VisRestricted) {}

    fn visit_attribute(&mut self, _: &'a syn::Attribute) {}

    fn visit_macro(&mut self, item: &'a syn::Macro) {
        syn::visit::visit_macro(self, item);
        self.scan(item.tokens.clone());
    }
}

fn attributes_of(item: &syn::Item) -> &[syn::Attribute] {
    match item {
        syn::Item::Const(item) => &item.attrs,
        syn::Item::Enum(item) => &item.attrs,
        syn::Item::ExternCrate(item) => &item.attrs,
        syn::Item::Fn(item) => &item.attrs,
        syn::Item::ForeignMod(item) => &item.attrs,
        syn::Item::Impl(item) => &item.attrs,
        syn::Item::Macro(item) => &item.attrs,
        syn::Item::Mod(item) => &item.attrs,
        syn::Item::Static(item) => &item.attrs,
        syn::Item::Struct(item) => &item.attrs,
        syn::Item::Trait(item) => &item.attrs,
        syn::Item::TraitAlias(item) => &item.attrs,
        syn::Item::Type(item) => &item.attrs,
        syn::Item::Union(item) => &item.attrs,
        syn::Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// References between files: from, to, and what is named where.
pub type References = BTreeMap<(usize, usize), BTreeMap<String, usize>>;

impl Tree {
    /// What files of the crate name of each other's items.
    pub fn references(&self) -> References {
        let mut found = References::new();
        for (at, module) in self.modules.iter().enumerate() {
            let mut add = |target: usize, name: &str, line: usize| {
                let to = self.modules[target].file;
                if to != module.file {
                    let lines = found.entry((module.file, to)).or_default();
                    let first = lines.entry(name.to_owned()).or_insert(line);
                    *first = (*first).min(line);
                }
            };
            for (path, line) in &module.paths {
                // A module is used through what is named in it.
                if let Some(Target::Item(target)) = self.resolve(at, path) {
                    add(target, path.last().map_or("", |name| name), *line);
                }
            }
            for (path, line) in &module.globs {
                // Through these globs single names are looked up, or come from a macro.
                if let Some(Target::Module(target)) = self.resolve(at, path)
                    && !self.is_inside(at, target)
                    && !self.is_inside(target, at)
                {
                    add(target, "*", *line);
                }
            }
        }
        found
    }
}
