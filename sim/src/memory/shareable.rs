//! Physical memory (`cuMemCreate`) that processes pass to each other, as file descriptors or as
//! fabric handles.
//!
//! All of it lies in one file of the process that made it. An exported descriptor is that file,
//! opened anew: each export is an open file description of its own, as with a driver. Its position
//! says where in the file the memory lies, how large it is and on which device, and goes with it
//! through sockets. A fabric handle is the same in 64 bytes, and names the descriptor of the
//! process ([`super::ipc::IpcHandle`]): it works as long as that process lives.
//!
//! Who still has exported memory is not known, so its bytes are not given out again.

use std::ffi::CStr;
use std::fs::File;
use std::io::{Seek, SeekFrom};
use std::os::fd::{AsRawFd, BorrowedFd, IntoRawFd, RawFd};

use cuda_sys::{CU_MEM_HANDLE_TYPE_FABRIC, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, CUresult};
use signal_free::descriptors::own_proc;

use super::Memory;
use super::backing_file::BackingFile;
use super::ipc::IpcHandle;
use super::virtual_memory::{Physical, STEP};

/// The handle types that are simulated.
pub(crate) const TYPES: u32 = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR.0 | CU_MEM_HANDLE_TYPE_FABRIC.0;

/// The name of the file that physical memory lies in.
pub(super) const FILE: &CStr = c"streamsan-sim device memory";
const FABRIC: u64 = u64::from_le_bytes(*b"sim-fab1");
/// Stands for the host in the place of a device.
const HOST: u64 = 255;

const INVALID: CUresult = CUresult::ERROR_INVALID_VALUE;

/// Where memory lies in the file of its process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    offset: u64,
    size: u64,
    device: Option<u32>,
}

impl Place {
    /// As the position of a file: the device above the offset, and the size, in steps, in the bits
    /// that offsets leave free.
    fn position(self) -> Option<u64> {
        let (steps, device) = (self.size / STEP, self.device.map_or(HOST, u64::from));
        let fits = steps < STEP && self.offset < 1 << 54 && (device < HOST || self.device.is_none());
        fits.then_some(device << 54 | self.offset | steps)
    }

    fn of_position(position: u64) -> Self {
        let device = (position >> 54 != HOST).then_some((position >> 54) as u32);
        let offset = position & ((1 << 54) - 1) & !(STEP - 1);
        Self { offset, size: (position & (STEP - 1)) * STEP, device }
    }
}

/// Whether a descriptor stands for memory of a simulated GPU.
fn is_memory(file: RawFd) -> bool {
    let Ok(link) = std::fs::read_link(own_proc(&format!("fd/{file}"))) else { return false };
    let name = link.to_str().and_then(|link| link.strip_prefix("/memfd:")?.strip_suffix(" (deleted)"));
    name.is_some_and(|name| Ok(name) == FILE.to_str())
}

impl Memory {
    /// Memory that may be exported in this way: the descriptor of its file, which file that is, and
    /// where in it the memory lies.
    fn exportable(&self, handle: u64, kind: u32) -> Result<(i32, (u64, u64), Place), CUresult> {
        let known = self.physical(handle)?;
        // What came from another process is that one's to pass on.
        if known.handle_types & kind == 0 || known.file.is_some() {
            return Err(INVALID);
        }
        let Physical { offset, size, device, .. } = self.goes_out(handle)?;
        let Some((fd, identity)) = self.space.phys_file() else {
            crate::status::complain(
                "cuMemExportToShareableHandle: the program has closed the descriptor of the simulated GPU's memory, \
                 which other processes need",
            );
            return Err(CUresult::ERROR_OPERATING_SYSTEM);
        };
        Ok((fd, (identity.device, identity.inode), Place { offset, size, device }))
    }

    /// A descriptor of the program's for physical memory.
    pub(crate) fn export_descriptor(&self, handle: u64) -> Result<RawFd, CUresult> {
        const REFUSED: CUresult = CUresult::ERROR_OPERATING_SYSTEM;
        let (fd, _, place) = self.exportable(handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR.0)?;
        let position = place.position().ok_or(INVALID)?;
        let opened = File::options().read(true).write(true).open(own_proc(&format!("fd/{fd}")));
        let mut file = opened.map_err(|_| REFUSED)?;
        file.seek(SeekFrom::Start(position)).map_err(|_| REFUSED)?;
        Ok(file.into_raw_fd())
    }

    /// A fabric handle for physical memory.
    pub(crate) fn export_fabric(&self, handle: u64) -> Result<[u8; 64], CUresult> {
        let (fd, file, place) = self.exportable(handle, CU_MEM_HANDLE_TYPE_FABRIC.0)?;
        let Place { offset, size, device } = place;
        let (fd, device) = (fd as u64, device.map_or(HOST, u64::from));
        Ok(IpcHandle { magic: FABRIC, pid: u64::from(std::process::id()), fd, offset, size, device, file }.to_bytes())
    }

    fn adopt(&self, file: File, place: Place, handle_types: u32) -> Result<u64, CUresult> {
        let Place { offset, size, device } = place;
        let len = file.metadata().map_or(0, |data| data.len());
        if size == 0 || !is_memory(file.as_raw_fd()) || offset.checked_add(size).is_none_or(|end| end > len) {
            return Err(INVALID);
        }
        let part = BackingFile::part_of(file.into(), offset, size).ok_or(CUresult::ERROR_OUT_OF_MEMORY)?;
        Ok(self.adopt_physical(part, size, device, handle_types))
    }

    /// Physical memory behind a descriptor, which stays the program's.
    pub(crate) fn import_descriptor(&self, file: RawFd) -> Result<u64, CUresult> {
        if file < 0 {
            return Err(INVALID);
        }
        // SAFETY: borrowed for the copy only, which fails if the number is not open.
        let copy = unsafe { BorrowedFd::borrow_raw(file) }.try_clone_to_owned().map_err(|_| INVALID)?;
        let mut copy = File::from(copy);
        let position = copy.stream_position().map_err(|_| INVALID)?;
        self.adopt(copy, Place::of_position(position), CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR.0)
    }

    /// Physical memory behind a fabric handle.
    pub(crate) fn import_fabric(&self, bytes: &[u8; 64]) -> Result<u64, CUresult> {
        let handle = IpcHandle::from_bytes(bytes, FABRIC).ok_or(INVALID)?;
        let device = (handle.device != HOST).then_some(handle.device as u32);
        let place = Place { offset: handle.offset, size: handle.size, device };
        self.adopt(handle.open()?, place, CU_MEM_HANDLE_TYPE_FABRIC.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_read_as_it_was_written() {
        for (offset, size, device) in [(0, STEP, Some(0)), (7 * STEP, 3 * STEP, Some(7)), (1 << 40, 1 << 40, None)] {
            let place = Place { offset, size, device };
            let position = place.position().expect("it fits");
            assert!(i64::try_from(position).is_ok());
            assert_eq!(Place::of_position(position), place);
        }
        assert!(Place { offset: 0, size: STEP * STEP, device: None }.position().is_none());
        assert!(Place { offset: 0, size: STEP, device: Some(HOST as u32) }.position().is_none());
    }
}
