//! The names of the variables that PTX text defines.
//!
//! Owns a look at the lines that begin with a directive. The whole of a text is not parsed: this is
//! asked for in the program under test, of libraries with megabytes of text.

/// Names of the `.global` and `.const` variables of a module, in the order of the text. Those that
/// another module defines (`.extern`) are not among them.
pub fn ptx_variables(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| {
        let line = line.trim_start();
        if !line.starts_with('.') {
            return None;
        }
        // `.visible .const .align 4 .b8 name[64] = {1, 2};`
        let head = line.split(['=', '[', ';']).next().unwrap_or_default();
        let mut words = head.split_whitespace();
        let linking = |word: &&str| matches!(*word, ".visible" | ".weak" | ".common");
        let space = words.by_ref().find(|word| !linking(word))?;
        let name = words.last().filter(|name| !name.starts_with('.') && !name.contains(['(', ')', ',', '"']))?;
        matches!(space, ".global" | ".const").then_some(name)
    })
}

#[cfg(test)]
mod tests {
    use super::ptx_variables;

    #[test]
    fn definitions_are_found_and_nothing_else() {
        let text = "\
.version 9.0
.target sm_80, debug
.address_size 64
.const .align 4 .b8 pad[64];
.visible .const .align 8 .u64 target;
  .global .align 16 .v4 .f32 vectors[2] = {1, 2};
.weak .global .align 4 .u32 counter = 3;
.common .global .b32 shared_one;
.extern .global .align 4 .b8 elsewhere[];
.extern .shared .align 16 .b8 dynamic[];
.shared .align 4 .b8 buffer[128];
.visible .func (.param .b32 func_retval0) helper(
.visible .entry kernel(
\t.param .u64 kernel_param_0
)
{
\t.reg .b32 \t%r<3>;
\t.local .align 8 .b8 \t__local_depot0[8];
\tld.global.u32 \t%r1, [counter];
\t.loc 1 7 0
}
.file 1 \"constants.cu\"
";
        let names: Vec<&str> = ptx_variables(text).collect();
        assert_eq!(names, ["pad", "target", "vectors", "counter", "shared_one"]);
    }
}
