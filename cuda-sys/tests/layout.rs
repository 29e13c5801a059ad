//! Compares sizes, offsets and values of the types with CUDA's headers, through the C compiler.

use crate::common::{self, Headers};
use cuda_sys::{LAYOUTS, Layout, RUNTIME_12_LAYOUTS, RUNTIME_LAYOUTS};
use std::path::Path;

/// The version that the types describe: its headers must know every name.
const DESCRIBED: u32 = 13050;

fn flat(lists: &[&'static [Layout]]) -> Vec<Layout> {
    lists.iter().flat_map(|list| list.iter().copied()).collect()
}

/// Where a nested struct lies in C, which gives it no name: the outermost struct, the path of
/// members, the offset. The nested type is named after its parent and member, and anonymous members
/// (`anon1`) do not appear in paths.
fn place(all: &[Layout], name: &str) -> (String, Vec<String>, usize) {
    for (cut, _) in name.match_indices('_').collect::<Vec<_>>().into_iter().rev() {
        let (parent, member) = (&name[..cut], &name[cut + 1..]);
        let Some(parent) = all.iter().find(|layout| layout.name == parent) else { continue };
        let Some((_, offset)) = parent.fields.iter().find(|(field, _)| *field == member) else { continue };
        let (root, mut path, base) = place(all, parent.name);
        if !member.starts_with("anon") {
            path.push(member.to_owned());
        }
        return (root, path, base + offset);
    }
    (name.to_owned(), Vec::new(), 0)
}

/// A static assertion, and the C type it is about (empty where it is about none).
type Assertion = (String, String);

/// One static assertion per size and per offset.
fn assertions(all: &[Layout], c_name: impl Fn(&str) -> String) -> Vec<Assertion> {
    let mut lines = Vec::new();
    for layout in all {
        let (root, path, base) = place(all, layout.name);
        let root = c_name(&root);
        let anonymous = layout.name.rsplit('_').next().is_some_and(|last| last.starts_with("anon"));
        let name = layout.name;
        let mut add = |assertion: String, of: &str| {
            lines.push((root.clone(), format!("_Static_assert({assertion}, \"{of}\");")));
        };
        if path.is_empty() && !anonymous {
            add(format!("sizeof({root}) == {}", layout.size), &format!("sizeof {name}"));
            add(format!("_Alignof({root}) == {}", layout.align), &format!("alignof {name}"));
        } else if !anonymous {
            let member = path.join(".");
            add(format!("sizeof((({root} *)0)->{member}) == {}", layout.size), &format!("sizeof {name}"));
        }
        for (field, offset) in layout.fields.iter().filter(|(field, _)| !field.starts_with("anon")) {
            let mut path = path.clone();
            path.push(match *field {
                "type_" | "fn_" | "in_" | "ref_" | "mod_" => field.trim_end_matches('_').to_owned(),
                field => field.to_owned(),
            });
            let (member, offset) = (path.join("."), base + offset);
            add(format!("offsetof({root}, {member}) == {offset}"), &format!("{name}.{field}"));
        }
    }
    lines
}

/// Compiles the assertions; a false one fails, and so does, for the version described, one about an
/// unknown name. Returns how many held.
fn compare(headers: &Headers, includes: &[&str], lines: &[Assertion]) -> usize {
    // gcc complains of an unknown type once and then takes it for an int: such types must not reach
    // the assertions.
    let mut types: Vec<&String> = lines.iter().map(|(root, _)| root).filter(|root| !root.is_empty()).collect();
    types.dedup();
    let probes: Vec<String> =
        types.iter().enumerate().map(|(i, root)| format!("extern char probe{i}[sizeof({root})];")).collect();
    let missing: Vec<&String> = headers.check(includes, &probes).iter().map(|(line, _)| types[*line]).collect();
    assert!(headers.version != DESCRIBED || missing.is_empty(), "not in CUDA {}: {missing:?}", headers.version);
    let all = lines.len();
    let lines: Vec<String> =
        lines.iter().filter(|(root, _)| !missing.contains(&root)).map(|(_, line)| line.clone()).collect();

    let errors = headers.check(includes, &lines);
    let (mut wrong, unknown): (Vec<_>, Vec<_>) =
        errors.iter().partition(|(_, message)| message.contains("static assertion failed"));
    wrong.retain(|(_, message)| headers.version == DESCRIBED || !grows(headers.version, message));
    // 64 until CUDA 12, 128 since: the weaker demand serves the callers of both.
    wrong.retain(|(_, message)| headers.version < 13000 || !message.ends_with("\"alignof CUtensorMap\""));
    assert!(wrong.is_empty(), "CUDA {}: {wrong:#?}", headers.version);
    assert!(
        headers.version != DESCRIBED || unknown.is_empty(),
        "not in CUDA {}: {:#?}",
        headers.version,
        unknown.iter().map(|(line, message)| (&lines[*line], message)).collect::<Vec<_>>()
    );
    let mut absent: Vec<usize> = unknown.iter().map(|(line, _)| *line).collect();
    absent.dedup();
    let held = lines.len() - absent.len();
    println!("CUDA {}: {held} of {all} hold, {} not in this version", headers.version, all - held);
    held
}

/// What differs between versions by design: counts and masks of what there is, room that is left,
/// and three names that CUDA 12 gave to other numbers.
fn grows(version: u32, message: &str) -> bool {
    let name = message.split('"').nth(1).unwrap_or("");
    name.ends_with("_MAX")
        || name.ends_with("Max")
        || name.ends_with("TypeCount")
        || name.ends_with("_MASK")
        || name == "CU_COREDUMP_LIGHTWEIGHT_FLAGS"
        || name.ends_with("NUM_OPTIONS")
        || name.ends_with(".reserved")
        || GREW.contains(&name)
        || version < 12000 && name.starts_with("CU_DEVICE_ATTRIBUTE_CAN_USE_")
}

/// Structs that got members at their end. They only live in unions of fixed size
/// (`CUgraphNodeParams`, `CUdevResource`), so reading today's members out of yesterday's struct
/// stays inside of it.
const GREW: &[&str] = &[
    "sizeof CUDA_EXT_SEM_SIGNAL_NODE_PARAMS_v2",
    "sizeof CUDA_EXT_SEM_WAIT_NODE_PARAMS_v2",
    "sizeof CUDA_HOST_NODE_PARAMS_v2",
    "sizeof CUDA_EVENT_RECORD_NODE_PARAMS",
    "sizeof CUdevSmResource",
    "alignof CUdevResource_v1",
];

#[test]
fn driver_structs_have_the_layout_of_cuda_h() {
    let all = flat(LAYOUTS);
    let lines = assertions(&all, str::to_owned);
    for headers in common::headers() {
        // Before 13, a union member or two and some whole structs are missing, not more.
        let least = if headers.version >= 13000 { 85 } else { 55 };
        let held = compare(&headers, &["cuda.h"], &lines);
        assert!(held * 100 >= lines.len() * least, "CUDA {}: only {held} checked", headers.version);
    }
}

#[test]
fn runtime_structs_have_the_layout_of_the_runtime_headers() {
    let tagged = |name: &str| match name {
        "dim3" | "uint3" => name.to_owned(),
        union if union == "cudaLaunchAttributeValue" => union.to_owned(),
        name => format!("struct {}", name.trim_end_matches("_v12")),
    };
    for headers in common::headers().iter().filter(|headers| headers.version >= 12090) {
        let all = if headers.version >= 13000 { flat(RUNTIME_LAYOUTS) } else { RUNTIME_12_LAYOUTS.to_vec() };
        let lines = assertions(&all, tagged);
        let held = compare(headers, &["cuda_runtime_api.h"], &lines);
        assert!(held * 100 >= lines.len() * 90, "CUDA {}: only {held} checked", headers.version);
    }
}

/// The constants of the type files as (C name, value), read from their source: the macros that
/// define them are plain.
fn constants(folder: &str) -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(folder);
    let mut found = Vec::new();
    for file in std::fs::read_dir(folder).expect("the sources are there").flatten() {
        let text = std::fs::read_to_string(file.path()).expect("the sources are text");
        let mut inside = false;
        for line in text.lines() {
            let words: Vec<&str> = line.trim().trim_end_matches([',', ';']).split_whitespace().collect();
            match words[..] {
                [first, ..] if first.starts_with("c_enum!") || first.starts_with("c_consts!") => inside = true,
                ["c_result!", ..] => inside = true,
                ["}", ..] => inside = false,
                [_, "=", value, quoted] if inside => found.push((quoted.replace('"', ""), value.to_owned())),
                [name, "=", value] if inside => found.push((name.to_owned(), value.to_owned())),
                ["pub", "const", name, .., value] if name.starts_with("CU") => {
                    let value = match value.trim_end_matches(')') {
                        "core::ptr::null_mut(" => "0",
                        other => other
                            .trim_start_matches("CUstream::from_bits(")
                            .trim_start_matches("core::ptr::without_provenance_mut("),
                    };
                    found.push((name.trim_end_matches(':').to_owned(), value.to_owned()));
                }
                _ => {}
            }
        }
    }
    found
}

#[test]
fn constants_have_the_values_of_the_headers() {
    for (folder, header, least, oldest) in
        [("types", "cuda.h", 1000, 11080), ("runtime_types", "cuda_runtime_api.h", 350, 13000)]
    {
        let constants = constants(folder);
        assert!(constants.len() > least, "{folder}: only {} constants found in the source", constants.len());
        let lines: Vec<Assertion> = constants
            .iter()
            .map(|(name, value)| {
                (String::new(), format!("_Static_assert((long long)({name}) == {value}LL, \"{name}\");"))
            })
            .collect();
        for headers in common::headers().iter().filter(|headers| headers.version >= oldest) {
            compare(headers, &[header], &lines);
        }
    }
}

#[test]
fn a_wrong_layout_is_noticed() {
    let Some(headers) = common::headers().pop() else { return };
    let wrong = [Layout { name: "CUlaunchConfig", size: 48, align: 8, fields: &[("hStream", 24)] }];
    let lines: Vec<String> = assertions(&wrong, str::to_owned).into_iter().map(|(_, line)| line).collect();
    let errors = headers.check(&["cuda.h"], &lines);
    assert_eq!(errors.len(), 2, "{errors:?}");
}
