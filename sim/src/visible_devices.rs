//! `CUDA_VISIBLE_DEVICES`: which devices a program sees, and as which (CUDA C++ Programming Guide,
//! environment variables).
//!
//! Owns the numbers and names of devices as the system has them. What a device is like, `config`
//! says: all are alike.

use cuda_sys::uuid_text;

/// The most devices that there may be.
pub(crate) const MOST: usize = 8;

/// The devices that a program sees: its number of each leads to the system's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Visible {
    count: u32,
    system: [u8; MOST],
    /// How many there are, hidden ones among them.
    pub(crate) present: u32,
}

impl Visible {
    /// All devices of the system, at most [`MOST`].
    pub(crate) const fn all(present: u32) -> Visible {
        Visible { count: present, system: [0, 1, 2, 3, 4, 5, 6, 7], present }
    }

    /// Those that the variable names, by number or by the beginning of `GPU-` and UUID. What does
    /// not name a device ends the list; a device that is named twice leaves none.
    pub(crate) fn chosen(variable: &str, present: u32) -> Visible {
        let mut visible = Visible { count: 0, system: [0; MOST], present };
        for item in variable.split(',') {
            let Some(device) = named(item.trim(), present) else { break };
            if visible.system[..visible.count as usize].contains(&device) {
                return Visible { count: 0, ..visible };
            }
            visible.system[visible.count as usize] = device;
            visible.count += 1;
        }
        visible
    }

    /// How many a program sees.
    pub(crate) const fn count(self) -> u32 {
        self.count
    }

    /// The system's number of a device that the program sees.
    pub(crate) fn system(self, device: u32) -> u32 {
        self.system.get(device as usize).copied().unwrap_or_default().into()
    }
}

fn named(item: &str, present: u32) -> Option<u8> {
    if item.starts_with("GPU-") {
        let mut found = (0..present)
            .filter(|&device| uuid_text(uuid(device)).starts_with(&item.to_ascii_lowercase().replace("gpu-", "GPU-")));
        // Two that begin so are none.
        return found.next().filter(|_| found.next().is_none()).map(|device| device as u8);
    }
    let digits = item.len() - item.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    item[..digits].parse::<u32>().ok().filter(|&device| device < present).map(|device| device as u8)
}

/// The UUID of a device of the system.
pub(crate) fn uuid(device: u32) -> [u8; 16] {
    let mut bytes = *b"StreamSan sim  \0";
    bytes[15] = device as u8;
    bytes
}

/// The bus in the PCI address `0000:BUS:00.0` of a device of the system.
pub(crate) const fn pci_bus(device: u32) -> u32 {
    device + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(variable: &str) -> Vec<u32> {
        let visible = Visible::chosen(variable, 4);
        (0..visible.count()).map(|device| visible.system(device)).collect()
    }

    #[test]
    fn numbers_choose_and_reorder_and_what_is_none_ends_the_list() {
        assert_eq!(of("2"), [2]);
        assert_eq!(of("3,1"), [3, 1]);
        assert_eq!(of("0, 2x,1"), [0, 2, 1]);
        assert_eq!(of("1,7,0"), [1]);
        assert_eq!(of("-1,0"), [0; 0]);
        assert_eq!(of(""), [0; 0]);
        assert_eq!(of("NoDevFiles"), [0; 0]);
        assert_eq!(of("1,2,1"), [0; 0]);
    }

    #[test]
    fn names_choose_by_how_they_begin() {
        assert_eq!(of(&uuid_text(uuid(2))), [2]);
        assert_eq!(of(&format!("{},0", uuid_text(uuid(3)).to_uppercase())), [3, 0]);
        assert_eq!(of("GPU-53747265"), [0; 0], "all begin so");
        assert_eq!(Visible::chosen("GPU-53747265", 1).count(), 1);
    }
}
