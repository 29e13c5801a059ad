//! NVSHMEM's teams: which elements are in one, and which of several teams with the same elements it
//! is.
//!
//! Owns the exports of the functions that make and end teams, and the names by which its elements
//! know one another at a meeting ([`super::meetings`]). A team's number is its element's own; what
//! all of them know is which elements it has, by their numbers in the world, and that they have
//! made their teams together, one after the other. So teams of the same elements are counted as
//! they are made. Those that NVSHMEM makes by itself (the world, its parts on one machine) are none
//! of these, nor are those of `nvshmemx_team_init`.

use std::collections::HashMap;
use std::ffi::{c_int, c_long, c_void};
use std::sync::{LazyLock, Mutex, PoisonError};

use super::{SONAME, asking, elements_of, export, is_observed, own_place_in};
use crate::real::library::LibraryFunction;
use cuda_sys::FnId;

/// `NVSHMEM_TEAM_WORLD`.
pub(super) const WORLD: i32 = 0;
/// `NVSHMEM_TEAM_SHARED`: the elements whose memory can be reached by loads and stores.
const SHARED: i32 = 1;

/// Elements of a team whose order is followed.
const MOST: usize = 64;

/// The numbers of elements in the world.
type Elements = Vec<u8>;

#[derive(Default)]
struct Teams {
    /// How many were made of the same elements before, this one included.
    nth: HashMap<i32, u64>,
    made: HashMap<Elements, u64>,
}

static TEAMS: LazyLock<Mutex<Teams>> = LazyLock::new(Mutex::default);

/// The number of an element in another team.
fn translated(team: i32, element: usize, other: i32) -> Option<i32> {
    static TRANSLATE: LibraryFunction = LibraryFunction::new(SONAME, c"nvshmem_team_translate_pe");
    type Translate = unsafe extern "C" fn(i32, c_int, i32) -> c_int;
    let real = TRANSLATE.find(0)?;
    // SAFETY: NVSHMEM's signature; the team exists, and so does its element.
    let number = unsafe { std::mem::transmute::<usize, Translate>(real)(team, element as c_int, other) };
    (number >= 0).then_some(number)
}

/// The elements of a team in its order, by their numbers in the world.
fn elements(team: i32) -> Option<Vec<i32>> {
    (0..elements_of(team)?).map(|element| translated(team, element, WORLD)).collect()
}

fn bytes(world: &[i32]) -> Elements {
    world.iter().flat_map(|number| number.to_le_bytes()).collect()
}

/// An element: its place in the team, and the name of its event.
pub(super) type NamedElement = (usize, Vec<u8>);

/// The name of the own event, and those of the elements that share memory with this one, by their
/// places in the team.
pub(super) fn names(team: i32) -> Option<(NamedElement, Vec<NamedElement>)> {
    let (world, own) = (elements(team)?, own_place_in(team)?);
    let common = bytes(&world);
    let nth = TEAMS.lock().unwrap_or_else(PoisonError::into_inner).nth.get(&team).copied().unwrap_or(0);
    let name = |element: usize| {
        let parts = [trace::MEETING_KEY, &common, &nth.to_le_bytes(), &world[element].to_le_bytes()];
        (element, parts.concat())
    };
    let near = |element: &usize| *element != own && translated(team, *element, SHARED).is_some();
    let others: Vec<NamedElement> = (0..world.len()).filter(near).map(name).collect();
    (own < world.len() && others.len() < MOST).then(|| (name(own), others))
}

/// A team was made, of which this element is one, or not (a negative number).
fn made(team: *const i32) {
    // SAFETY: NVSHMEM has just written it.
    let team = if team.is_null() { -1 } else { unsafe { *team } };
    if team < 0 {
        return;
    }
    let Some(world) = asking(|| elements(team)) else { return };
    let mut teams = TEAMS.lock().unwrap_or_else(PoisonError::into_inner);
    let count = teams.made.entry(bytes(&world)).or_default();
    *count += 1;
    let nth = *count;
    teams.nth.insert(team, nth);
}

/// A team is split: into one, or into two.
fn splitting(_id: FnId, real: impl FnOnce() -> c_int, teams: [*const i32; 2]) -> c_int {
    if !is_observed() {
        return real();
    }
    let answer = asking(real);
    if answer == 0 {
        teams.into_iter().for_each(made);
    }
    answer
}

/// A team ends: its number may come back.
fn ending(_id: FnId, real: impl FnOnce(), team: i32) {
    TEAMS.lock().unwrap_or_else(PoisonError::into_inner).nth.remove(&team);
    real();
}

/// `nvshmem_team_config_t`.
type Config = *const c_void;

export!(
    ["nvshmem_team_split_strided"](parent: i32, start: c_int, stride: c_int, count: c_int, config: Config, mask: c_long,
        team: *mut i32) -> c_int, -1, splitting([team, std::ptr::null()])
);
export!(
    ["nvshmem_team_split_2d"](parent: i32, range: c_int, x_config: Config, x_mask: c_long, x_team: *mut i32,
        y_config: Config, y_mask: c_long, y_team: *mut i32) -> c_int, -1, splitting([x_team, y_team])
);
export!(["nvshmem_team_destroy"] (team: i32), ending(team));
